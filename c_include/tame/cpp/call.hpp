/* tame/cpp/call.hpp - one call of a job, as the functions of its struct see it: struct tame_call with
 * types.
 *
 * Part of tame.hpp. */
#ifndef TAME_CPP_CALL_HPP
#define TAME_CPP_CALL_HPP

#include "../input.h"
#include "error.hpp"

namespace TAME_IMPL_HIDDEN tame
{

/* An argument that is iodata: a binary or a list of binaries (the option `iodata` of -tame), read
 * chunk by chunk with call::next. It names its chunk, so it may be copied and moved. */
class TAME_IMPL_SEEN iodata
{
  public:
    TAME_IMPL_HIDDEN iodata() = default;
    TAME_IMPL_HIDDEN explicit iodata(int index) : impl_index(index)
    {
    }
    int impl_index = 0;
};

class TAME_IMPL_SEEN call
{
  public:
    TAME_IMPL_HIDDEN call(tame_call *from, tame_iodata *chunks) : call_(from), chunks_(chunks)
    {
    }
    call(const call &) = delete;
    call &operator=(const call &) = delete;

    /* For functions of tame.h and of erl_nif.h. */
    TAME_IMPL_HIDDEN tame_call *c_call() const
    {
        return call_;
    }
    TAME_IMPL_HIDDEN ErlNifEnv *env() const
    {
        return call_->env;
    }
    template <class T> TAME_IMPL_HIDDEN term make(T &&value) const
    {
        return term(tame::make(call_->env, std::forward<T>(value)));
    }

    /* A term that is kept from one slice to the next; at first []. A job whose steps use it says
     * `terms`. */
    TAME_IMPL_HIDDEN ERL_NIF_TERM &root(int number)
    {
        return call_->root[number];
    }

    /* Return what these return. They throw what the codec of a value throws. */
    TAME_IMPL_HIDDEN tame_status badarg(int number, const char *sentence)
    {
        return tame_badarg(call_, number, sentence);
    }
    template <class... T> TAME_IMPL_HIDDEN tame_status fail(T &&...reason)
    {
        if constexpr (sizeof...(T) == 1)
            return tame_fail(call_, make(std::forward<T>(reason)...).value());
        else
            return tame_fail(call_, make(std::tuple<impl::bare<T>...>(reason...)).value());
    }
    TAME_IMPL_HIDDEN tame_status enomem()
    {
        return tame_enomem(call_);
    }
    template <class T> TAME_IMPL_HIDDEN tame_status emit(T &&part)
    {
        return tame_emit(call_, make(std::forward<T>(part)).value());
    }

    /* The chunk at hand; it may lie elsewhere in the next step. */
    TAME_IMPL_HIDDEN std::string_view chunk(iodata input) const
    {
        const tame_iodata &at = chunks_[input.impl_index];

        return at.data == nullptr
                   ? std::string_view()
                   : std::string_view(reinterpret_cast<const char *>(at.data), at.size);
    }
    /* Goes on to the next chunk: 1; 0, there is none; -1, the list holds something else. */
    TAME_IMPL_HIDDEN int next(iodata input)
    {
        return tame_iodata_next(call_, &chunks_[input.impl_index]);
    }

  private:
    tame_call *call_;
    tame_iodata *chunks_;
};

namespace impl
{

/* Where a job's exceptions are told. */
struct call_failure {
    tame_call *call;
    ErlNifEnv *env;

    explicit call_failure(tame_call *of) : call(of), env(of->env)
    {
    }
    void badarg(int number, const char *sentence) const
    {
        (void)tame_badarg(call, number, sentence);
    }
    void fail(ERL_NIF_TERM reason) const
    {
        (void)tame_fail(call, reason);
    }
};

} // namespace impl
} // namespace tame

#endif
