%% Which processes still run code of a module that would have to be purged.
-module(tame_old_code).

-export([in_use/1]).

-import(tame_text, [text/2]).

%% How long one process may take to say whether it does.
-define(ASK_MS, 500).

%% A refusal that names them. A process that runs native code just now answers when it has come
%% back; it counts as one of them.
-spec in_use(module()) -> tame_isolation:refusal().
in_use(Module) ->
    Others = processes() -- [self()],
    Asked = maps:from_list([{asked(Pid, Module), Pid} || Pid <- Others]),
    Pids = running(Asked, [], erlang:monotonic_time(millisecond) + ?ASK_MS),
    Format = "~0p: processes run code of ~p that would have to be purged",
    {error, {in_use, text(Format, [lists:sublist(Pids, 5), Module])}}.

asked(Pid, Module) ->
    Id = make_ref(),
    _ = erlang:check_process_code(Pid, Module, [{async, Id}]),
    Id.

running(Asked, Running, _Until) when map_size(Asked) =:= 0 ->
    Running;
running(Asked, Running, Until) ->
    receive
        {check_process_code, Id, true} when is_map_key(Id, Asked) ->
            running(maps:remove(Id, Asked), [map_get(Id, Asked) | Running], Until);
        {check_process_code, Id, _} ->
            running(maps:remove(Id, Asked), Running, Until)
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
        maps:values(Asked) ++ Running
    end.
