#!/bin/sh
# Makes a certificate, starts the release, asks it over HTTP/1.1 and HTTP/2, asks for more than it does, and stops it.
set -eu

app=_build/prod/rel/http_app/bin/http_app
folder=$(mktemp -d)
# The node's name is known to an epmd of its own, which ends with it; else one would be left.
export ERL_EPMD_ADDRESS=127.0.0.1
ERL_EPMD_PORT=$((20000 + $$ % 12000))
export ERL_EPMD_PORT
export RELEASE_DISTRIBUTION=name RELEASE_NODE="http_app_$$@127.0.0.1"
export PORT=0 TLS_CERT="$folder/cert.pem" TLS_KEY="$folder/key.pem"

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout "$TLS_KEY" -out "$TLS_CERT" 2>/dev/null

"$app" start &
release=$!
end() {
    "$app" stop || kill $release
    wait
    _build/prod/rel/http_app/erts-*/bin/epmd -kill >/dev/null
    rm -rf "$folder"
}
trap end EXIT
# The system chooses the port; the release tells it when the server is there.
tries=60
until port=$("$app" rpc 'IO.puts(Tame.HTTP.port(HttpApp.Server))' 2>/dev/null); do
    tries=$((tries - 1))
    [ $tries -gt 0 ]
    sleep 0.5
done
url=https://localhost:$port

get() { curl -sS --no-progress-meter --max-time 60 --cacert "$TLS_CERT" "$@"; }
expect() { # WANTED GOT
    if [ "$1" != "$2" ]; then
        echo "expected '$1', got '$2'" >&2
        exit 1
    fi
    echo "$2"
}

# ALPN decides; curl says which protocol it was.
expect 'hello by HTTP/2 2' "$(get -w '%{http_version}' "$url/" | paste -sd ' ')"
expect 'hello by HTTP/1.1 1.1' "$(get --http1.1 -w '%{http_version}' "$url/" | paste -sd ' ')"
expect fine "$(get "$url/health")"

head -c 3000000 /dev/urandom >"$folder/data"
expect "$(openssl dgst -sha3-256 -r "$folder/data" | cut -d ' ' -f 1)" "$(get --data-binary "@$folder/data" "$url/sha3")"
expect 78498 "$(get "$url/primes/1000000")"
expect '"-1" is no number from 0 to 4294967295' "$(get "$url/primes/-1")"

# More than runs and waits: some are done, some refused at once, and hello is answered meanwhile.
many=$(for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do printf '%s\n' "-o /dev/null $url/primes/1000000"; done)
# shellcheck disable=SC2086
get -Z --parallel-max 16 -w '%{http_code}\n' $many >"$folder/many" &
busy=$!
expect 'hello by HTTP/2' "$(get "$url/")"
wait $busy
done=$(grep -c 200 "$folder/many" || :)
refused=$(grep -c 503 "$folder/many" || :)
echo "primes: $done done, $refused refused"
[ "$done" -ge 1 ] && [ "$refused" -ge 1 ] && [ $((done + refused)) -eq 16 ]
