// What the types of /types/csharp use of ServiceStack.Client, as its documentation describes it.
using System;

namespace ServiceStack
{
    public interface IReturn<T> { }
    public interface IGet { }
    public interface IPost { }
    public class ResponseStatus
    {
        public string ErrorCode { get; set; }
    }

    [AttributeUsage(AttributeTargets.Class, AllowMultiple = true)]
    public class RouteAttribute : Attribute
    {
        public RouteAttribute(string path, string verbs)
        {
            Path = path;
            Verbs = verbs;
        }

        public string Path { get; private set; }
        public string Verbs { get; private set; }
    }
}

// The compiler's package does not contain this assembly of .NET.
namespace System.Runtime.Serialization
{
    public class DataContractAttribute : Attribute { }

    public class DataMemberAttribute : Attribute
    {
        public int Order { get; set; }
    }
}
