/* tame/cpp/output.hpp - a binary that a job makes, as a member of its struct.
 *
 * Part of tame.hpp. As struct tame_output, which says what it costs, with an owner: it is freed unless
 * it has become the result (return std::move(out)). Without memory: std::bad_alloc. One that grows or
 * shrinks is a member of the job's struct, and not of what that points to. */
#ifndef TAME_CPP_OUTPUT_HPP
#define TAME_CPP_OUTPUT_HPP

#include "../output.h"
#include "call.hpp"

namespace TAME_IMPL_HIDDEN tame
{

class TAME_IMPL_SEEN output
{
  public:
    TAME_IMPL_HIDDEN output() = default;
    /* The bytes are not zeroed. */
    TAME_IMPL_HIDDEN explicit output(std::size_t size)
    {
        if (!tame_output_new(&output_, size))
            impl::no_memory();
    }
    TAME_IMPL_HIDDEN output(output &&from) noexcept : output_(from.output_)
    {
        from.output_ = tame_output();
    }
    TAME_IMPL_HIDDEN output &operator=(output &&from) noexcept
    {
        std::swap(output_, from.output_);
        return *this;
    }
    TAME_IMPL_HIDDEN ~output()
    {
        tame_output_free(&output_);
    }
    /* nullptr while it lies in several pieces. */
    TAME_IMPL_HIDDEN unsigned char *data()
    {
        return output_.data;
    }
    TAME_IMPL_HIDDEN std::size_t size() const
    {
        return output_.size;
    }
    TAME_IMPL_HIDDEN void append(call &call, std::string_view bytes)
    {
        append(call, bytes.data(), bytes.size());
    }
    TAME_IMPL_HIDDEN void append(call &call, const void *bytes, std::size_t size)
    {
        if (!tame_output_append(call.c_call(), &output_, bytes, size))
            impl::no_memory();
    }
    /* Where the next bytes go, and for how many there is room: `least`, 1, or more. */
    TAME_IMPL_HIDDEN std::pair<unsigned char *, std::size_t> room(call &call, std::size_t least)
    {
        std::size_t room = 0;
        unsigned char *const to = tame_output_room(call.c_call(), &output_, least, &room);

        if (to == nullptr)
            impl::no_memory();
        return {to, room};
    }
    TAME_IMPL_HIDDEN void wrote(std::size_t size)
    {
        tame_output_wrote(&output_, size);
    }
    TAME_IMPL_HIDDEN void shrink(call &call, std::size_t size)
    {
        tame_output_shrink(call.c_call(), &output_, size);
    }
    /* TAME_DONE: it lies in one piece. Return what else it returns, from step. */
    TAME_IMPL_HIDDEN tame_status gather(call &call, std::size_t &units)
    {
        return tame_output_gather(call.c_call(), &output_, &units);
    }
    /* The term, which owns the bytes from then on. */
    TAME_IMPL_HIDDEN term take(ErlNifEnv *env)
    {
        tame_call call{};

        call.env = env;
        const term made(tame_output_term(&call, &output_));
        if (call.impl_failure != TAME_IMPL_NO_FAILURE)
            impl::no_memory();
        return made;
    }

  private:
    tame_output output_{};
};

template <> struct codec<output> {
    static ERL_NIF_TERM make(ErlNifEnv *env, output &&value)
    {
        return value.take(env).value();
    }
};

} // namespace tame

#endif
