%% What newer OTPs have that OTP 25 has not, each in one place with the version it came in. The C
%% side's are in c_include/tame/otp_features.h.
-module(tame_otp_features).

-export([trace/0]).
-export([atom_lengths/1]).

%% OTP 27: the module of trace sessions, which disturb no other tracer; none before. To be called by
%% a variable, because the compiler and Dialyzer of OTP 25 do not know it. By the release, because a
%% search for a module that is not there takes milliseconds.
-spec trace() -> module() | none.
trace() ->
    case list_to_integer(erlang:system_info(otp_release)) of
        Release when Release >= 27 -> trace;
        _ -> none
    end.

%% OTP 28: the atom table of a beam has a negative count, and each length is an operand; before, a
%% length was one byte. By the beam, which need not be of the OTP that runs.
-spec atom_lengths(Count :: integer()) -> operand | byte.
atom_lengths(Count) when Count < 0 -> operand;
atom_lengths(_Count) -> byte.
