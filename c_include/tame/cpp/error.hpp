/* tame/cpp/error.hpp - exceptions of C++ as errors of Erlang.
 *
 * Part of tame.hpp. No exception leaves a function that the VM calls:
 *
 *     tame::badarg(2, "must be ...")    badarg, of that argument
 *     tame::error(reason...)            the reason; several values are a tuple
 *     std::bad_alloc                    enomem
 *     any other std::exception          {tame, {exception, What}}
 *     anything else                     {tame, {exception, <<"no std::exception">>}}
 *
 * The same holds for what a tame::codec throws while the reason of a tame::error is made.
 * std::invalid_argument is any other: it comes from wherever a number was parsed, and nobody knows of
 * which argument. With -fno-exceptions nothing is thrown and nothing caught. */
#ifndef TAME_CPP_ERROR_HPP
#define TAME_CPP_ERROR_HPP

#include <exception>
#include <memory>
#include <new>

#include "containers.hpp"

namespace TAME_IMPL_HIDDEN tame
{

/* Argument `number`, counted from 1, is wrong; the sentence, a literal, goes on after it. */
class badarg : public std::exception
{
  public:
    badarg(int number, const char *sentence) noexcept : number_(number), sentence_(sentence)
    {
    }
    int number() const noexcept
    {
        return number_;
    }
    const char *what() const noexcept override
    {
        return sentence_;
    }

  private:
    int number_;
    const char *sentence_;
};

/* An error with a reason of the author's: tame::error(tame::atom("bad_line"), 17). The values are
 * kept as C++ values, so it may be thrown where there is no environment. */
class error : public std::exception
{
  public:
    template <class First, class... Rest,
              class = std::enable_if_t<!std::is_base_of_v<error, impl::bare<First>>>>
    explicit error(First &&first, Rest &&...rest)
        : reason_(std::make_shared<values<std::decay_t<First>, std::decay_t<Rest>...>>(
              std::forward<First>(first), std::forward<Rest>(rest)...))
    {
    }
    ERL_NIF_TERM reason(ErlNifEnv *env) const
    {
        return reason_->make(env);
    }
    const char *what() const noexcept override
    {
        return "tame::error";
    }

  private:
    struct any_values {
        virtual ~any_values() = default;
        virtual ERL_NIF_TERM make(ErlNifEnv *env) const = 0;
    };
    template <class... T> struct values final : any_values {
        static_assert(!impl::borrows<std::tuple<T...>>::value,
                      "tame: an error owns its reason: give it a std::string, not a view");
        std::tuple<T...> all;

        template <class... From> explicit values(From &&...from) : all(std::forward<From>(from)...)
        {
        }
        ERL_NIF_TERM make(ErlNifEnv *env) const override
        {
            if constexpr (sizeof...(T) == 1)
                return tame::make(env, std::get<0>(all));
            else
                return tame::make(env, all);
        }
    };
    std::shared_ptr<const any_values> reason_;
};

namespace impl
{

inline ERL_NIF_TERM exception_reason(ErlNifEnv *env, std::string_view what)
{
    return enif_make_tuple2(env, enif_make_atom(env, "tame"),
                            enif_make_tuple2(env, enif_make_atom(env, "exception"),
                                             make_bytes(env, what.data(), what.size())));
}

#ifdef __cpp_exceptions
/* Tells `failure` what is being handled; it has env, badarg(number, sentence) and fail(term). What is
 * thrown while the reason is made is the failure then. */
template <class Failure> void caught(const Failure &failure) noexcept
{
    try {
        try {
            throw;
        } catch (const badarg &e) {
            failure.badarg(e.number(), e.what());
        } catch (const error &e) {
            failure.fail(e.reason(failure.env));
        }
    } catch (const std::bad_alloc &) {
        failure.fail(enif_make_atom(failure.env, "enomem"));
    } catch (const std::exception &e) {
        failure.fail(exception_reason(failure.env, e.what()));
    } catch (...) {
        failure.fail(exception_reason(failure.env, "no std::exception"));
    }
}
#endif

/* What `function` returns; `otherwise` after an exception, which failure has been told. */
template <class Failure, class Function, class Result>
Result guarded(const Failure &failure, Result otherwise, Function &&function) noexcept
{
#ifdef __cpp_exceptions
    try {
        return function();
    } catch (...) {
        caught(failure);
        return otherwise;
    }
#else
    (void)failure;
    (void)otherwise;
    return function();
#endif
}

/* No memory, where the caller cannot be told otherwise: without exceptions as operator new does. */
[[noreturn]] inline void no_memory()
{
#ifdef __cpp_exceptions
    throw std::bad_alloc();
#else
    std::terminate();
#endif
}

} // namespace impl
} // namespace tame

#endif
