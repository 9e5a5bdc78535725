%% Arguments of growing size for the function that is audited. They are made in the process that
%% calls it, so that what is made is not copied.
%%
%%   binary   bytes without order                json     the text of a JSON array of objects
%%   utf8     text of one to four bytes a character
%%   list     integers, 8 bytes each             map      integer keys, 32 bytes a pair
%%   integer  one, of that number of bytes              iolist   binaries of 64 bytes, nested
%%   term     what json is the text of: a list of maps with binary keys
%%
%% Sizes are those of the data; a term takes a few times as much on a heap.
-module(tame_audit_input).

-export([args/3]).
-export([keep/1]).
-export([make/2]).
-export([most/1]).

-export_type([input/0]).

%% One for each argument; or one for all of them. file: what keep/1 was given.
-type input() :: [name() | {literal, term()}] | file.

-type name() :: binary | json | utf8 | list | map | integer | iolist | term.

%% What makes the arguments of a file, for args/3. It raises nothing.
-spec keep(fun((pos_integer()) -> {ok, term()} | {error, binary()})) -> ok.
keep(Fun) ->
    persistent_term:put(?MODULE, Fun).

%% The arguments of a function of that arity, of about Bytes bytes each.
-spec args(input(), pos_integer(), arity()) -> {ok, [term()]} | {error, binary()}.
args(file, Bytes, Arity) ->
    case (persistent_term:get(?MODULE))(Bytes) of
        {ok, Args} when is_list(Args), length(Args) =:= Arity -> {ok, Args};
        {ok, Other} ->
            Values = [Other, 8, Bytes, Arity],
            {error, words("gives ~tP for ~b, expected a list of ~b arguments", Values)};
        {error, _} = Error -> Error
    end;
args([One], Bytes, Arity) ->
    {ok, lists:duplicate(Arity, argument(One, Bytes))};
args(Each, Bytes, Arity) when length(Each) =:= Arity ->
    {ok, [argument(One, Bytes) || One <- Each]};
args(Each, _Bytes, Arity) ->
    {error, words("has ~b generators for ~b arguments", [length(Each), Arity])}.

argument({literal, Term}, _Bytes) -> Term;
argument(Name, Bytes) -> make(Name, Bytes).

words(Format, Values) ->
    unicode:characters_to_binary(io_lib:format(Format, Values)).

%% The most bytes that it is sensible to ask for.
-spec most(input()) -> pos_integer().
most(file) -> 64 * 1024 * 1024;
most(Inputs) -> lists:min([256 * 1024 * 1024 | [limit(Name) || Name <- Inputs]]).

limit(integer) -> 256 * 1024;
limit(Name) when Name =:= list; Name =:= map; Name =:= iolist; Name =:= term -> 16 * 1024 * 1024;
limit(Name) when Name =:= json; Name =:= utf8 -> 64 * 1024 * 1024;
limit(_) -> 256 * 1024 * 1024.

-spec make(name(), pos_integer()) -> term().
make(binary, Bytes) ->
    repeat(<<<<(rand(N)):8>> || N <- lists:seq(1, 1021)>>, Bytes);
make(utf8, Bytes) ->
    %% Cut where a character ends.
    Part = unicode:characters_to_binary([$a, 16#e9, 16#20ac, 16#1f600]),
    Copies = binary:copy(Part, Bytes div byte_size(Part)),
    Rest = binary:copy(<<"a">>, Bytes rem byte_size(Part)),
    <<Copies/binary, Rest/binary>>;
make(list, Bytes) ->
    [rand(N) || N <- lists:seq(1, max(1, Bytes div 8))];
make(map, Bytes) ->
    maps:from_list([{N, rand(N)} || N <- lists:seq(1, max(1, Bytes div 32))]);
make(integer, Bytes) ->
    1 bsl (8 * Bytes - 1) + 12345;
make(iolist, Bytes) ->
    nest([binary:copy(<<(rand(N))>>, 64) || N <- lists:seq(1, max(1, Bytes div 64))]);
make(term, Bytes) ->
    [object(N) || N <- lists:seq(1, max(1, Bytes div 64))];
make(json, Bytes) ->
    Objects = [object_text(N) || N <- lists:seq(1, min(1000, max(1, Bytes div 64)))],
    Text = iolist_to_binary(lists:join($,, Objects)),
    Copies = max(1, Bytes div (byte_size(Text) + 1)),
    <<$[, (iolist_to_binary(lists:join($,, lists:duplicate(Copies, Text))))/binary, $]>>.

repeat(Part, Bytes) ->
    binary:part(binary:copy(Part, Bytes div byte_size(Part) + 1), 0, Bytes).

nest([A, B | Rest]) -> [[A, B] | nest(Rest)];
nest(Rest) -> Rest.

object(N) ->
    #{
        <<"id">> => rand(N),
        <<"name">> => <<"some \"words\" é"/utf8>>,
        <<"tags">> => [<<"a">>, true, 1.5]
    }.

object_text(N) ->
    [
        <<"{\"id\":">>,
        integer_to_binary(rand(N)),
        <<",\"name\":\"some \\\"words\\\" é\",\"tags\":[\"a\",true,1.5]}"/utf8>>
    ].

%% The same bytes in each run.
rand(N) -> (N * 2654435761) band 16#ffffffff rem 251.
