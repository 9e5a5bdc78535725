#!/bin/sh
# Starts the release, kills jiffy's OS process, and expects answers before and after.
set -eu

release=_build/prod/rel/isolated_app
app=$release/bin/isolated_app
export RELEASE_DISTRIBUTION=name RELEASE_NODE="isolated_app_$$@127.0.0.1"
# The node's name is known to an epmd of its own, which ends with it; else one would be left.
export ERL_EPMD_ADDRESS=127.0.0.1
ERL_EPMD_PORT=$((20000 + $$ % 12000))
export ERL_EPMD_PORT

"$app" start &
trap '"$app" stop; wait; "$release"/erts-*/bin/epmd -kill >/dev/null' EXIT
# It answers before it has started all its applications.
started='IO.puts(List.keymember?(Application.started_applications(), :isolated_app, 0))'
tries=60
until "$app" rpc "$started" 2>/dev/null | grep -q true; do
    tries=$((tries - 1))
    [ $tries -gt 0 ]
    sleep 0.5
done

shown=$("$app" rpc 'IO.inspect(IsolatedApp.demo(), width: 100)')
echo "$shown"
echo "$shown" | grep -q 'before: {:ok, %{"a" => 1}}'
echo "$shown" | grep -q 'later: {:ok, %{"a" => 1}}'
echo "$shown" | grep -q 'same_process: false'
