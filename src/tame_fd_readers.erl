%% Readers for a library on tame/fd.h whose descriptors send messages for credit: processes that
%% wait for a descriptor in the place of its owner, who may be at something else, and have the
%% NIF library read when it is ready.
%%
%% A library has four readers of its own, under its own supervisor. The module of its NIFs has this
%% behaviour: `push' reads what is there, sends it to the owner, and waits again, in native code.
%%
%%     start(_, _) -> tame_fd_readers:start_link(line_sup, line_nif).
%%
%%     active(Fd, Credit) -> line_nif:credit(Fd, Credit, tame_fd_readers:of_fd(line_nif, Fd)).
%%
%% The native side has the reader wait by tame_fd_wait with ref 0: the descriptor's own term is then
%% the reference, so a reader knows no descriptor but the one that is ready, and nothing has to be
%% told to it. A descriptor has always the same reader, so its messages keep their order. A reader
%% that dies is told to the hook `lost' of each descriptor that waits with it.
%%
%% docs/guide/descriptors.md has an example.
-module(tame_fd_readers).
-behaviour(supervisor).

-export([start_link/2]).
-export([init/1]).
-export([of_fd/2]).
%% Internal.
-export([start_reader/2, reader/2]).
-export([handle_info/2, handle_call/3, handle_cast/2]).

-define(READERS, 4).

%% The descriptor is ready, or is to be looked at again.
-callback push(Fd :: term()) -> ok.

%% A supervisor of that name, with the readers of the library whose NIFs are in the module.
-spec start_link(atom(), module()) -> {ok, pid()} | {error, term()}.
start_link(Supervisor, Nifs) ->
    case supervisor:start_link({local, Supervisor}, ?MODULE, Nifs) of
        {ok, Pid} -> {ok, Pid};
        {error, Reason} -> {error, Reason}
    end.

%% What a supervisor's init returns: also for one of the library's own.
-spec init(module()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Nifs) ->
    Names = names(Nifs),
    ok = persistent_term:put({?MODULE, Nifs}, Names),
    Readers = [
        #{id => Name, start => {?MODULE, start_reader, [Name, Nifs]}}
     || Name <- tuple_to_list(Names)
    ],
    {ok, {#{strategy => one_for_one, intensity => 10, period => 10}, Readers}}.

%% Atoms are made once for a library.
names(Nifs) ->
    Prefix = atom_to_list(Nifs) ++ "_reader_",
    list_to_tuple([list_to_atom(Prefix ++ integer_to_list(N)) || N <- lists:seq(1, ?READERS)]).

%% The reader of this descriptor; undefined when the library's application does not run.
-spec of_fd(module(), Fd :: term()) -> pid() | undefined.
of_fd(Nifs, Fd) ->
    case persistent_term:get({?MODULE, Nifs}, none) of
        none -> undefined;
        Names -> whereis(element(1 + erlang:phash2(Fd, ?READERS), Names))
    end.

-spec start_reader(atom(), module()) -> {ok, pid()}.
start_reader(Name, Nifs) ->
    ok = tame_orphan:wait(Name),
    proc_lib:start_link(?MODULE, reader, [Name, Nifs]).

-spec reader(atom(), module()) -> no_return().
reader(Name, Nifs) ->
    true = register(Name, self()),
    %% Many descriptors may be ready at once, and a message of each waits here.
    _ = process_flag(message_queue_data, off_heap),
    ok = proc_lib:init_ack({ok, self()}),
    gen_server:enter_loop(?MODULE, [], Nifs).

%% Waiting is gen_server's, so no reader stands in the code of this module when it is loaded anew.
-spec handle_info(term(), module()) -> {noreply, module()}.
handle_info({tame_fd, Fd, ready}, Nifs) ->
    ok = Nifs:push(Fd),
    {noreply, Nifs};
handle_info(_, Nifs) ->
    {noreply, Nifs}.

-spec handle_call(term(), term(), module()) -> {noreply, module()}.
handle_call(_, _, Nifs) -> {noreply, Nifs}.

-spec handle_cast(term(), module()) -> {noreply, module()}.
handle_cast(_, Nifs) -> {noreply, Nifs}.
