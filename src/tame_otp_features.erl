%% What the running OTP has that OTP 25 has not, each in one place with the version it came in. The C side's
%% are in c_include/tame/otp_features.h.
-module(tame_otp_features).

-export([trace/0]).

%% OTP 27: the module of trace sessions, which disturb no other tracer; none before. To be called by a
%% variable, because the compiler and Dialyzer of OTP 25 do not know it. By the release, because a search
%% for a module that is not there takes milliseconds.
-spec trace() -> module() | none.
trace() ->
    case list_to_integer(erlang:system_info(otp_release)) of
        Release when Release >= 27 -> trace;
        _ -> none
    end.
