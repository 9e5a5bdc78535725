%% Keys from the bytes that a terminal sends: UTF-8, CSI, SS3, modifiers, bracketed paste, mouse.
%% Pure.
%%
%%     1> {Events, _State} = tame_tty_keys:decode(<<"a\e[1;5A">>, tame_tty_keys:new()).
%%     {[{key, 97, []}, {key, up, [ctrl]}], ...}
%%
%% However the bytes are cut into pieces, the events are the same. Only an ESC needs a clock: it may
%% be the key or the beginning of a sequence, and flush/1 says that nothing more came. A state holds
%% a few hundred bytes at most, whatever comes, but for what is pasted: of that up to 4096.
-module(tame_tty_keys).

-export([new/0]).
-export([decode/2]).
-export([flush/1]).
-export([pending/1]).

-export_type([state/0, event/0, key/0, modifier/0]).

%% ctrl, alt and shift are in this order. With a character shift is told only by terminals that send
%% keys as numbers; it is in the character itself.
-type modifier() :: ctrl | alt | shift | meta.

-type key() ::
    char()
    | up | down | left | right | home | 'end' | page_up | page_down | insert | delete
    | enter | tab | backspace | escape
    | {f, 1..20}
    | keypad_begin.

%% paste: what is pasted comes in pieces of 4096 bytes, of which the last is `last`, as it is.
%% unknown: bytes that are no key that we know, at most 64 of a sequence. Columns and rows of the
%% mouse begin with 1.
-type event() ::
    {key, key(), [modifier()]}
    | {paste, more | last, binary()}
    | {mouse, press | release | drag | move, button(), position(), [modifier()]}
    | {mouse, wheel, up | down | left | right, position(), [modifier()]}
    | {focus, in | out}
    | {unknown, binary()}.

-type button() :: left | middle | right | none | {button, 4..11}.
-type position() :: {Column :: pos_integer(), Row :: pos_integer()}.

-define(SEQUENCE_SIZE, 64).
-define(PASTE_SIZE, 4096).
-define(PASTE_END, <<"\e[201~">>).

%% alt, alt2: an ESC, two of them. Bytes of a sequence stand without the introducer.
-type state() ::
    ground
    | alt
    | alt2
    | {utf8, Alt :: boolean(), Missing :: 1..3, binary()}
    | {csi, Alt :: boolean(), binary()}
    | {ss3, Alt :: boolean(), binary()}
    | {linux, Alt :: boolean()}
    | {too_long, binary()}
    | {paste, Matched :: 0..5, binary()}.

-spec new() -> state().
new() ->
    ground.

%% Whether flush/1 would say something: bytes wait for others.
-spec pending(state()) -> boolean().
pending(ground) -> false;
pending({paste, _, _}) -> false;
pending(_) -> true.

-spec decode(binary(), state()) -> {[event()], state()}.
decode(Bytes, State) ->
    decode(Bytes, State, []).

decode(<<>>, State, Events) ->
    {lists:reverse(Events), State};
decode(<<Byte, Rest/binary>>, State, Events) ->
    case step(State, Byte) of
        {event, New, Event} -> decode(Rest, New, [Event | Events]);
        %% What was begun is none, and the byte begins anew.
        {again, New, Event} -> decode(<<Byte, Rest/binary>>, New, [Event | Events]);
        New -> decode(Rest, New, Events)
    end.

%% Nothing more came for a while: what is pending is all there is. A paste goes on.
-spec flush(state()) -> {[event()], state()}.
flush(ground) -> {[], ground};
flush({paste, _, _} = Paste) -> {[], Paste};
flush(alt) -> {[{key, escape, []}], ground};
flush(alt2) -> {[{key, escape, []}, {key, escape, []}], ground};
flush({csi, Alt, <<>>}) -> {[{key, $[, modifiers([alt | meta(Alt)])}], ground};
flush({ss3, Alt, <<>>}) -> {[{key, $O, modifiers([alt | meta(Alt)])}], ground};
flush(State) -> {[{unknown, bytes(State)}], ground}.

%% ---- one byte ----

-spec step(state(), byte()) ->
    state() | {event, state(), event()} | {again, state(), event()}.
step(ground, $\e) ->
    alt;
step(ground, Byte) ->
    begun(Byte, false);
step(alt, $[) ->
    {csi, false, <<>>};
step(alt, $O) ->
    {ss3, false, <<>>};
step(alt, $\e) ->
    alt2;
step(alt, Byte) ->
    begun(Byte, true);
%% xterm sends the modifier in the sequence, rxvt and PuTTY an ESC before it. Else the first one was
%% the key.
step(alt2, $[) ->
    {csi, true, <<>>};
step(alt2, $O) ->
    {ss3, true, <<>>};
step(alt2, $\e) ->
    {event, alt2, {key, escape, []}};
step(alt2, _Byte) ->
    {again, alt, {key, escape, []}};
step({utf8, Alt, Missing, Bytes}, Byte) when Byte band 16#C0 =:= 16#80 ->
    continued(Alt, Missing, <<Bytes/binary, Byte>>);
step({utf8, _, _, _} = State, _Byte) ->
    {again, ground, {unknown, bytes(State)}};
step({csi, Alt, <<>>}, $[) ->
    {linux, Alt};
step({csi, Alt, Bytes}, Byte) when Byte >= 16#20, Byte =< 16#3F ->
    case byte_size(Bytes) of
        Size when Size >= ?SEQUENCE_SIZE - 4 -> {too_long, bytes({csi, Alt, Bytes})};
        _ -> {csi, Alt, <<Bytes/binary, Byte>>}
    end;
step({csi, _Alt, <<"200">>}, $~) ->
    {paste, 0, <<>>};
step({csi, Alt, Bytes}, Byte) when Byte >= 16#40, Byte =< 16#7E ->
    {event, ground, sequence(Bytes, Byte, Alt)};
step({ss3, Alt, Bytes}, Byte) when Byte >= $0, Byte =< $9, byte_size(Bytes) < 2 ->
    {ss3, Alt, <<Bytes/binary, Byte>>};
step({ss3, Alt, Bytes}, Byte) when Byte >= 16#40, Byte =< 16#7E ->
    {event, ground, application(Bytes, Byte, Alt)};
step({linux, Alt}, Byte) when Byte >= $A, Byte =< $E ->
    {event, ground, {key, {f, Byte - $A + 1}, modifiers(meta(Alt))}};
step({too_long, Bytes}, Byte) when Byte >= 16#40, Byte =< 16#7E ->
    {event, ground, {unknown, Bytes}};
step({too_long, _} = State, Byte) when Byte >= 16#20, Byte =< 16#3F ->
    State;
step({paste, Matched, Bytes}, Byte) ->
    pasted(Matched, Bytes, Byte);
step(State, _Byte) ->
    {again, ground, {unknown, bytes(State)}}.

%% What a state has taken.
bytes({utf8, Alt, _, Bytes}) -> <<(introducer(Alt, <<>>))/binary, Bytes/binary>>;
bytes({csi, Alt, Bytes}) -> <<(introducer(Alt, <<"\e[">>))/binary, Bytes/binary>>;
bytes({ss3, Alt, Bytes}) -> <<(introducer(Alt, <<"\eO">>))/binary, Bytes/binary>>;
bytes({linux, Alt}) -> introducer(Alt, <<"\e[[">>);
bytes({too_long, Bytes}) -> Bytes.

introducer(true, Bytes) -> <<"\e", Bytes/binary>>;
introducer(false, Bytes) -> Bytes.

%% ---- characters ----

begun(Byte, Alt) when Byte < 16#80 ->
    {Key, Modifiers} = ascii(Byte),
    {event, ground, {key, Key, modifiers(Modifiers ++ meta(Alt))}};
begun(Byte, Alt) when Byte >= 16#C2, Byte =< 16#DF ->
    {utf8, Alt, 1, <<Byte>>};
begun(Byte, Alt) when Byte >= 16#E0, Byte =< 16#EF ->
    {utf8, Alt, 2, <<Byte>>};
begun(Byte, Alt) when Byte >= 16#F0, Byte =< 16#F4 ->
    {utf8, Alt, 3, <<Byte>>};
begun(Byte, Alt) ->
    {event, ground, {unknown, introducer(Alt, <<Byte>>)}}.

continued(Alt, 1, Bytes) ->
    case Bytes of
        <<Char/utf8>> -> {event, ground, {key, Char, modifiers(meta(Alt))}};
        %% Too long a form, a surrogate, or beyond Unicode.
        _ -> {event, ground, {unknown, introducer(Alt, Bytes)}}
    end;
continued(Alt, Missing, Bytes) ->
    {utf8, Alt, Missing - 1, Bytes}.

meta(true) -> [alt];
meta(false) -> [].

ascii(0) -> {$\s, [ctrl]};
ascii($\r) -> {enter, []};
ascii($\t) -> {tab, []};
ascii($\e) -> {escape, []};
ascii(16#7F) -> {backspace, []};
ascii(Byte) when Byte =< 26 -> {Byte + $a - 1, [ctrl]};
ascii(Byte) when Byte < 32 -> {Byte + $@, [ctrl]};
ascii(Byte) -> {Byte, []}.

%% ---- sequences ----

sequence(<<"<", Parameters/binary>>, Final, Alt) when Final =:= $M; Final =:= $m ->
    case numbers(Parameters) of
        [Code, X, Y] when X > 0, Y > 0 -> mouse(Code, {X, Y}, Final);
        _ -> unknown(<<"<", Parameters/binary>>, Final, Alt)
    end;
sequence(<<>>, $I, false) ->
    {focus, in};
sequence(<<>>, $O, false) ->
    {focus, out};
sequence(<<>>, $Z, Alt) ->
    {key, tab, modifiers([shift | meta(Alt)])};
sequence(Parameters, Final, Alt) ->
    case key(numbers(Parameters), Final) of
        {Key, Modifiers} -> {key, Key, modifiers(Modifiers ++ meta(Alt))};
        unknown -> unknown(Parameters, Final, Alt)
    end.

unknown(Parameters, Final, Alt) ->
    {unknown, <<(bytes({csi, Alt, Parameters}))/binary, Final>>}.

%% Numbers between semicolons, of which each may be missing (0) and have parts after colons, which
%% are left out; anything else is no number.
numbers(<<>>) ->
    [];
numbers(Parameters) ->
    Parts = binary:split(Parameters, <<";">>, [global]),
    Texts = [hd(binary:split(Part, <<":">>)) || Part <- Parts],
    case lists:all(fun number/1, Texts) of
        true -> [value(Text) || Text <- Texts];
        false -> none
    end.

number(Text) ->
    byte_size(Text) =< 7 andalso
        lists:all(fun(C) -> C >= $0 andalso C =< $9 end, binary_to_list(Text)).

value(<<>>) -> 0;
value(Text) -> binary_to_integer(Text).

%% rxvt says the modifier by the final byte.
key([Number], $^) -> with(numbered(Number), [ctrl]);
key([Number], $@) -> with(numbered(Number), [ctrl, shift]);
key([Number], $~) -> with(numbered(Number), []);
key([Number, Modifier], $~) -> with(numbered(Number), held(Modifier));
key([27, Modifier, Char], $~) -> with(character(Char), held(Modifier));
key([Char], $u) -> with(character(Char), []);
key([Char, Modifier | _], $u) -> with(character(Char), held(Modifier));
key([], Final) -> with(lettered(Final), []);
key([1], Final) -> with(lettered(Final), []);
key([1, Modifier], Final) -> with(lettered(Final), held(Modifier));
key(_, _) -> unknown.

with(unknown, _Modifiers) -> unknown;
with(_Key, unknown) -> unknown;
with(Key, Modifiers) -> {Key, Modifiers}.

application(<<>>, Final, Alt) ->
    told(lettered_application(Final), [], <<>>, Final, Alt);
application(Modifier, Final, Alt) ->
    told(lettered_application(Final), held(binary_to_integer(Modifier)), Modifier, Final, Alt).

told(Key, Modifiers, Parameters, Final, Alt) ->
    case with(Key, Modifiers) of
        unknown -> {unknown, <<(bytes({ss3, Alt, Parameters}))/binary, Final>>};
        {_, _} -> {key, Key, modifiers(Modifiers ++ meta(Alt))}
    end.

lettered($A) -> up;
lettered($B) -> down;
lettered($C) -> right;
lettered($D) -> left;
lettered($E) -> keypad_begin;
lettered($F) -> 'end';
lettered($H) -> home;
lettered($P) -> {f, 1};
lettered($Q) -> {f, 2};
lettered($R) -> {f, 3};
lettered($S) -> {f, 4};
lettered(_) -> unknown.

%% The keypad sends its characters so, where it is asked to.
lettered_application($M) -> enter;
lettered_application($I) -> tab;
lettered_application(Final) when Final >= $j, Final =< $y -> Final - $j + $*;
lettered_application($X) -> $=;
lettered_application(Final) -> lettered(Final).

numbered(1) -> home;
numbered(2) -> insert;
numbered(3) -> delete;
numbered(4) -> 'end';
numbered(5) -> page_up;
numbered(6) -> page_down;
numbered(7) -> home;
numbered(8) -> 'end';
numbered(N) when N >= 11, N =< 15 -> {f, N - 10};
numbered(N) when N >= 17, N =< 21 -> {f, N - 11};
numbered(N) when N >= 23, N =< 26 -> {f, N - 12};
numbered(N) when N >= 28, N =< 29 -> {f, N - 13};
numbered(N) when N >= 31, N =< 34 -> {f, N - 14};
numbered(_) -> unknown.

character(9) -> tab;
character(13) -> enter;
character(27) -> escape;
character(127) -> backspace;
character(Char) when Char >= 32, Char < 16#D800; Char > 16#DFFF, Char =< 16#10FFFF -> Char;
character(_) -> unknown.

%% One more than the bits.
held(Modifier) when Modifier >= 1, Modifier =< 64 ->
    Bits = Modifier - 1,
    Names = [{1, shift}, {2, alt}, {4, ctrl}, {8, meta}, {32, meta}],
    [Name || {Bit, Name} <- Names, Bits band Bit =/= 0];
held(_) ->
    unknown.

modifiers(Modifiers) ->
    [Name || Name <- [ctrl, alt, shift, meta], lists:member(Name, Modifiers)].

%% ---- the mouse ----

mouse(Code, Position, Final) when Code < 256 ->
    Names = [{4, shift}, {8, alt}, {16, ctrl}],
    Modifiers = modifiers([Name || {Bit, Name} <- Names, Code band Bit =/= 0]),
    Button = (Code band 3) bor ((Code band 16#C0) bsr 4),
    case {Button, Code band 32, Final} of
        {B, 0, $M} when B >= 4, B =< 7 ->
            {mouse, wheel, element(B - 3, {up, down, left, right}), Position, Modifiers};
        {3, 32, _} -> {mouse, move, none, Position, Modifiers};
        {B, 32, _} -> {mouse, drag, button(B), Position, Modifiers};
        {B, 0, $M} -> {mouse, press, button(B), Position, Modifiers};
        {B, 0, $m} -> {mouse, release, button(B), Position, Modifiers}
    end;
mouse(Code, {X, Y}, Final) ->
    {unknown, iolist_to_binary(io_lib:format("\e[<~b;~b;~b~c", [Code, X, Y, Final]))}.

button(0) -> left;
button(1) -> middle;
button(2) -> right;
button(3) -> none;
%% 4 to 7 is the wheel, 8 and more are the buttons at the side.
button(Button) -> {button, Button}.

%% ---- what is pasted ----

%% Only its first byte is an ESC, so where the end does not match it begins anew at once.
pasted(0, Bytes, Byte) when Byte =/= $\e ->
    full(0, <<Bytes/binary, Byte>>);
pasted(Matched, Bytes, Byte) ->
    case binary:at(?PASTE_END, Matched) of
        Byte when Matched =:= 5 -> {event, ground, {paste, last, Bytes}};
        Byte -> {paste, Matched + 1, Bytes};
        _ when Byte =:= $\e -> full(1, <<Bytes/binary, (begun_end(Matched))/binary>>);
        _ -> full(0, <<Bytes/binary, (begun_end(Matched))/binary, Byte>>)
    end.

begun_end(Matched) ->
    binary:part(?PASTE_END, 0, Matched).

full(Matched, <<Piece:?PASTE_SIZE/binary, Rest/binary>>) ->
    %% A copy: what is kept does not keep the whole.
    {event, {paste, Matched, binary:copy(Rest)}, {paste, more, Piece}};
full(Matched, Bytes) ->
    {paste, Matched, Bytes}.
