%% How large arguments are, before term_to_binary/1 takes memory for them. A list may name one
%% binary a million times: in the VM it takes a word each time, in external format all its bytes.
-module(tame_ring_size).

-export([is_within/2]).

%% Whether a term may have no more than that many bytes in external format: looked at no further
%% than it takes to say no.
-spec is_within(term(), non_neg_integer()) -> boolean().
is_within(Term, Most) ->
    left(Term, Most) >= 0.

%% What is left of the bytes, at most.
left(_Term, Left) when Left < 0 -> Left;
left([Head | Tail], Left) -> left(Tail, left(Head, Left));
left(Bits, Left) when is_bitstring(Bits) -> Left - byte_size(Bits);
left(Map, Left) when is_map(Map) -> pairs(maps:next(maps:iterator(Map)), Left);
left(Tuple, Left) when is_tuple(Tuple) -> elements(Tuple, tuple_size(Tuple), Left);
left(_Other, Left) -> Left - 1.

elements(_Tuple, N, Left) when N =:= 0; Left < 0 -> Left;
elements(Tuple, N, Left) -> elements(Tuple, N - 1, left(element(N, Tuple), Left)).

pairs(none, Left) -> Left;
pairs(_Pairs, Left) when Left < 0 -> Left;
pairs({Key, Value, More}, Left) -> pairs(maps:next(More), left(Value, left(Key, Left))).
