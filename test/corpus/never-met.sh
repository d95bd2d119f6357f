# Functions for the lines of bash in never-met.yaml. DIR, PORT and the passwords are in the environment.

# Runs a command beside, which ends with its fault.
aside() { set -m; ("$@") </dev/null >/dev/null 2>&1 & echo $! >>"$DIR/aside"; set +m; }
# Ends what runs beside.
ended() {
  [ -f "$DIR/aside" ] || return 0
  while read -r group; do kill -9 -- "-$group" 2>/dev/null; done <"$DIR/aside"
  rm "$DIR/aside"
  # A server goes on with a statement whose client is gone.
  case $GROUP in
    postgres) sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)' AND pid <> pg_backend_pid()" postgres ;;
    mariadb) for id in $(sql 'SHOW PROCESSLIST' | awk '/SLEEP\(60\)/ { print $1 }'); do sql "KILL $id"; done ;;
  esac
}
# Waits until a command succeeds.
till() { for _ in $(seq 300); do eval "$1" >/dev/null 2>&1 && return; sleep 0.1; done; echo "never: $1" >&2; return 1; }

case $GROUP in
  postgres | pgbouncer)
    sql() { psql -qAtX -v ON_ERROR_STOP=1 "host=127.0.0.1 port=$SERVER user=postgres dbname=${2:-app}" -c "$1"; }
    as() { psql -qAtX "host=127.0.0.1 port=$PORT user=$1 dbname=app" -c "$2"; }
    console() { psql -qAtX "host=127.0.0.1 port=$PORT user=admin dbname=pgbouncer" -c "$1"; }
    ;;
  mariadb)
    sql() { MYSQL_PWD= mysql --socket="$DIR/db.sock" -uroot -N -e "$1"; }
    as() { mysql -h127.0.0.1 "-P$PORT" "-u$1" -N orders -e "$2"; }
    ;;
esac
app() { as app "$@"; }

cli() { redis-cli -p "$PORT" "$@"; }
mon() { redis-cli -p "$PORT" --user mon --pass "$PASSWORD" --no-auth-warning "$@"; }

api() {
  curl -sS -u "$ADMINISTRATOR" -X "$1" -H 'Content-Type: application/json' ${3:+-d "$3"} "http://127.0.0.1:$PORT/api/$2"
}
publish() {
  api POST "exchanges/%2F/$1/publish" '{"properties":{},"routing_key":"'"$2"'","payload":"x","payload_encoding":"string"}'
}

ldif() { tr '|' '\n' <<<"$1" | ldapmodify -x -H "ldap://127.0.0.1:$PORT" -D "$ADMIN" -w "$ADMIN_PASSWORD"; }

# An authority: its name, its subject, extensions.
ca() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$DIR/$1.key" -out "$DIR/$1.pem" \
    -subj "$2" -days 90 -addext keyUsage=critical,keyCertSign,cRLSign ${3:+-addext "$3"}
}
# A certificate: its name, its authority, extensions, options of its signature.
leaf() {
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$DIR/$1.key" -out "$DIR/$1.csr" \
    -subj /CN=www.svc.test
  openssl x509 -req -in "$DIR/$1.csr" -CA "$DIR/$2.pem" -CAkey "$DIR/$2.key" -CAcreateserial -days 60 \
    -extfile <(printf '%s\n' "$3") "${@:4}" -out "$DIR/$1.pem"
}
serve() {
  aside openssl s_server -accept "127.0.0.1:$PORT" -cert "$DIR/$1.pem" -key "$DIR/$1.key" -quiet -www "${@:2}"
  till "exec 3<>/dev/tcp/127.0.0.1/$PORT"
}

# A plug-in of these lines.
script() { printf '%s\n' "$@" >"$DIR/plugin"; chmod 755 "$DIR/plugin"; }
