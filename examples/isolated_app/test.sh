#!/bin/sh
# Starts the release, kills jiffy's OS process, and expects answers before and after.
set -eu

app=_build/prod/rel/isolated_app/bin/isolated_app
export RELEASE_DISTRIBUTION=name RELEASE_NODE="isolated_app_$$@127.0.0.1"

"$app" start &
trap '"$app" stop; wait' EXIT
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
