import type { Admin } from './service.ts'

/** Administration that is loaded, and opens its store, when it is first asked for something. */
export function lazyAdmin(store: string, load: () => Promise<Admin>): Admin {
  const lazily =
    <A extends readonly unknown[], R>(pick: (admin: Admin) => (...given: A) => Promise<R>) =>
    async (...given: A): Promise<R> =>
      await pick(await load())(...given)
  return {
    store,
    users: {
      add: lazily((admin) => admin.users.add),
      list: lazily((admin) => admin.users.list),
      any: lazily((admin) => admin.users.any),
      near: lazily((admin) => admin.users.near),
      show: lazily((admin) => admin.users.show),
      passwd: lazily((admin) => admin.users.passwd),
      disable: lazily((admin) => admin.users.disable),
      enable: lazily((admin) => admin.users.enable),
      remove: lazily((admin) => admin.users.remove),
    },
    keys: {
      create: lazily((admin) => admin.keys.create),
      list: lazily((admin) => admin.keys.list),
      near: lazily((admin) => admin.keys.near),
      revoke: lazily((admin) => admin.keys.revoke),
    },
    roles: {
      show: lazily((admin) => admin.roles.show),
      holders: lazily((admin) => admin.roles.holders),
      names: lazily((admin) => admin.roles.names),
    },
    heartbeats: {
      list: lazily((admin) => admin.heartbeats.list),
      near: lazily((admin) => admin.heartbeats.near),
      remove: lazily((admin) => admin.heartbeats.remove),
    },
    audit: { list: lazily((admin) => admin.audit.list) },
  }
}
