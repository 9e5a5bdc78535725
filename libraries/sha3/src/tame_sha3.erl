%% SHA-3 and what is made of its permutation: SHAKE, cSHAKE, KMAC, ParallelHash (FIPS 202, NIST SP 800-185),
%% TurboSHAKE and KangarooTwelve (RFC 9861).
%%
%%     1> binary:encode_hex(tame_sha3:hash(sha3_256, [<<"to be ">>, "or not"])).
%%     <<"8FFE4371A1E204AF59F36A1C6EC411064366C4835DD7C1099FC26C7BB1337360">>
%%
%% Data is iodata of any size. No function holds a scheduler, and each may have a deadline (tame:with/2). Lengths are
%% bytes, from 0 to 17179869184. Keys, names and customization strings are binaries of at most 8192 bytes, that of
%% KangarooTwelve of 1048576. What is wrong raises badarg, and the shell says of which argument and why. Arguments come in
%% the order of the standards.
-module(tame_sha3).

-export([hash/2]).
-export([hash_many/2]).
-export([shake128/2, shake256/2]).
-export([turboshake128/2, turboshake256/2]).
-export([turboshake128/3, turboshake256/3]).
-export([kt128/2, kt256/2]).
-export([kt128/3, kt256/3]).
-export([cshake128/4, cshake256/4]).
-export([kmac128/4, kmac256/4]).
-export([kmacxof128/4, kmacxof256/4]).
-export([parallel_hash128/4, parallel_hash256/4]).
-export([parallel_hash_xof128/4, parallel_hash_xof256/4]).
-export([init/1, update/2, final/1, final/2, clone/1]).
-export([keccak_f1600/1]).
-export([implementation/0]).

-export_type([sha3/0, algorithm/0, state/0, digest_length/0, short/0]).

-compile({parse_transform, tame_job}).

-tame([
    {hash, 2, #{iodata => [2]}},
    {hash_many, 2, #{}},
    {shake128, 2, #{iodata => [1]}},
    {shake256, 2, #{iodata => [1]}},
    {turboshake128, 2, #{iodata => [1]}},
    {turboshake256, 2, #{iodata => [1]}},
    {turboshake128, 3, #{iodata => [1]}},
    {turboshake256, 3, #{iodata => [1]}},
    {kt128, 2, #{iodata => [1]}},
    {kt256, 2, #{iodata => [1]}},
    {kt128, 3, #{iodata => [1]}},
    {kt256, 3, #{iodata => [1]}},
    {cshake128, 4, #{iodata => [1, 3, 4]}},
    {cshake256, 4, #{iodata => [1, 3, 4]}},
    {kmac128, 4, #{iodata => [1, 2, 4]}},
    {kmac256, 4, #{iodata => [1, 2, 4]}},
    {kmacxof128, 4, #{iodata => [1, 2, 4]}},
    {kmacxof256, 4, #{iodata => [1, 2, 4]}},
    {parallel_hash128, 4, #{iodata => [1, 4]}},
    {parallel_hash256, 4, #{iodata => [1, 4]}},
    {parallel_hash_xof128, 4, #{iodata => [1, 4]}},
    {parallel_hash_xof256, 4, #{iodata => [1, 4]}},
    {init, 1, #{}},
    {update, 2, #{iodata => [2]}},
    {final, 1, #{}},
    {final, 2, #{}},
    {clone, 1, #{}},
    {keccak_f1600, 1, #{iodata => [1]}}
]).
-nifs([implementation/0]).
-on_load(load/0).

%% Digests of 28, 32, 48 and 64 bytes.
-type sha3() :: sha3_224 | sha3_256 | sha3_384 | sha3_512.

%% What init/1 takes. A domain is a number from 1 to 127, and 31 where none is given.
-type algorithm() ::
    sha3()
    | shake128 | shake256
    | turboshake128 | turboshake256
    | {turboshake128 | turboshake256, Domain :: 1..127}
    | kt128 | kt256
    | {kt128 | kt256, Custom :: short()}
    | {cshake128 | cshake256, Name :: short(), Custom :: short()}
    | {kmac128 | kmac256 | kmacxof128 | kmacxof256, Key :: short(), Custom :: short()}
    | {parallel_hash128 | parallel_hash256 | parallel_hash_xof128 | parallel_hash_xof256,
        LeafSize :: pos_integer(), Custom :: short()}.

%% Changes with update/2, wherever it is known, until final/1 takes its digest. Of this node, and of this time.
-opaque state() :: reference().

-type digest_length() :: 0..17179869184.
-type short() :: binary().

%% The digest of FIPS 202.
-spec hash(sha3(), iodata()) -> binary().

%% The digests of many messages, in their order: up to eight at once, where the processor can.
-spec hash_many(sha3(), [binary()]) -> [binary()].

-spec shake128(iodata(), digest_length()) -> binary().
-spec shake256(iodata(), digest_length()) -> binary().

-spec turboshake128(iodata(), digest_length()) -> binary().
-spec turboshake256(iodata(), digest_length()) -> binary().
-spec turboshake128(iodata(), Domain :: 1..127, digest_length()) -> binary().
-spec turboshake256(iodata(), Domain :: 1..127, digest_length()) -> binary().

%% KangarooTwelve: leaves of 8 KiB are hashed up to eight at once.
-spec kt128(iodata(), digest_length()) -> binary().
-spec kt256(iodata(), digest_length()) -> binary().
-spec kt128(iodata(), Custom :: short(), digest_length()) -> binary().
-spec kt256(iodata(), Custom :: short(), digest_length()) -> binary().

%% NIST has names for functions of its own; the name is <<>> elsewhere.
-spec cshake128(iodata(), digest_length(), Name :: short(), Custom :: short()) -> binary().
-spec cshake256(iodata(), digest_length(), Name :: short(), Custom :: short()) -> binary().

-spec kmac128(Key :: short(), iodata(), digest_length(), Custom :: short()) -> binary().
-spec kmac256(Key :: short(), iodata(), digest_length(), Custom :: short()) -> binary().
-spec kmacxof128(Key :: short(), iodata(), digest_length(), Custom :: short()) -> binary().
-spec kmacxof256(Key :: short(), iodata(), digest_length(), Custom :: short()) -> binary().

%% Leaves of LeafSize bytes are hashed up to eight at once, those of at most 8 KiB also where data comes in pieces.
-spec parallel_hash128(iodata(), LeafSize :: pos_integer(), digest_length(), Custom :: short()) -> binary().
-spec parallel_hash256(iodata(), LeafSize :: pos_integer(), digest_length(), Custom :: short()) -> binary().
-spec parallel_hash_xof128(iodata(), LeafSize :: pos_integer(), digest_length(), Custom :: short()) -> binary().
-spec parallel_hash_xof256(iodata(), LeafSize :: pos_integer(), digest_length(), Custom :: short()) -> binary().

%% A state that takes its data bit by bit.
-spec init(algorithm()) -> state().

%% The same state, with the data in it. Calls with one state take turns. One that was ended, by a deadline or the death of
%% its caller, leaves a state that raises badarg from then on.
-spec update(state(), iodata()) -> state().

%% The digest of a state of SHA-3. The state is used up.
-spec final(state()) -> binary().

%% So many bytes of the others, whose digest has no size of its own. The state is used up.
-spec final(state(), digest_length()) -> binary().

%% A state that has the same data in it, and goes on alone.
-spec clone(state()) -> state().

%% The permutation itself, of a state of 200 bytes, the lanes in little-endian order.
-spec keccak_f1600(binary()) -> binary().

%% What was chosen for this machine when the library was loaded, or by TAME_SHA3_IMPL in the environment.
-spec implementation() -> portable | avx2 | avx512.
implementation() -> erlang:nif_error(not_loaded).

load() ->
    erlang:load_nif(filename:join(code:priv_dir(tame_sha3), "tame_sha3"), 0).
