#!/bin/sh
# Starts the release, kills jiffy's OS process, and expects answers before and after.
set -eu

release=_build/default/rel/isolated_app
app=$release/bin/isolated_app
export NODE="isolated_app_$$@127.0.0.1"
# The node's name is known to an epmd of its own, which ends with it; else one would be left.
export ERL_EPMD_ADDRESS=127.0.0.1
ERL_EPMD_PORT=$((20000 + $$ % 12000))
export ERL_EPMD_PORT

"$app" foreground &
# Each command of the script writes vm.args from vm.args.src anew; one that starts meanwhile would read half of it.
RELX_OUT_FILE_PATH=$(mktemp -d)
export RELX_OUT_FILE_PATH
end() {
    "$app" stop
    wait
    "$release"/erts-*/bin/epmd -kill >/dev/null
    rm -rf "$RELX_OUT_FILE_PATH"
}
trap end EXIT
# It answers before it has started all its applications.
started='lists:keymember(isolated_app, 1, application:which_applications()).'
tries=60
until "$app" eval "$started" 2>/dev/null | grep -q true; do
    tries=$((tries - 1))
    [ $tries -gt 0 ]
    sleep 0.5
done

shown=$("$app" eval 'isolated_app:demo().')
echo "$shown"
echo "$shown" | grep -q '{before, {ok, \[true]}}'
echo "$shown" | grep -q '{later, {ok, \[true]}}'
echo "$shown" | grep -q '{same_process, false}'
