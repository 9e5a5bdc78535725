/* tame/cpp/nif.hpp - plain NIFs from typed functions, and the library's table.
 *
 * Part of tame.hpp. */
#ifndef TAME_CPP_NIF_HPP
#define TAME_CPP_NIF_HPP

#include "../nif.h"
#include "job.hpp"
#include "output.hpp"

namespace TAME_IMPL_HIDDEN tame
{
namespace impl
{

/* Where a plain NIF's exceptions are told: it raises at once. */
struct nif_failure {
    ErlNifEnv *env;
    ERL_NIF_TERM *raised;

    /* 0 is no term: to raise it would end the VM. */
    void fail(ERL_NIF_TERM reason) const
    {
        *raised = enif_raise_exception(env, reason != 0 ? reason : fault("bad_reason"));
    }
    /* {tame, Reason} */
    ERL_NIF_TERM fault(const char *reason) const
    {
        return enif_make_tuple2(env, enif_make_atom(env, "tame"), enif_make_atom(env, reason));
    }
    /* A NIF cannot say more of an argument than its reason says. */
    void badarg(int number, const char *sentence) const
    {
        fail(tame::make(
            env, std::make_tuple(atom("badarg"), std::make_tuple(number, std::string(sentence)))));
    }
};

template <bool WithEnv, class R, class... T> struct plain {
    static constexpr int arity = sizeof...(T);

    template <auto Function>
    static ERL_NIF_TERM call(ErlNifEnv *env, int, const ERL_NIF_TERM argv[]) noexcept
    {
        ERL_NIF_TERM raised = 0;
        bool refused = false;
        const nif_failure failure{env, &raised};
        const ERL_NIF_TERM made = guarded(failure, ERL_NIF_TERM(0), [&] {
            std::tuple<T...> values;

            refused = !get(failure, argv, values, std::index_sequence_for<T...>());
            return refused ? ERL_NIF_TERM(0) : apply<Function>(env, std::move(values));
        });

        /* Neither a term nor why not: to the VM 0 is an error, whose reason nobody has set. */
        if (made == 0 && !enif_has_pending_exception(env, nullptr))
            failure.fail(failure.fault("failed"));
        return made != 0 ? made : raised;
    }

  private:
    template <std::size_t... I>
    static bool get(const nif_failure &failure, const ERL_NIF_TERM argv[], std::tuple<T...> &values,
                    std::index_sequence<I...>)
    {
        const auto one = [&](auto number, auto &value) {
            using type = bare<decltype(value)>;

            static_assert(!is_claim<type>::value && !is_iodata<type>::value,
                          "tame: a plain NIF claims nothing, and reads no iodata: write a job");
            if (codec<type>::get(failure.env, argv[number], value))
                return true;
            failure.badarg(static_cast<int>(number) + 1, must_be<type>.chars);
            return false;
        };

        (void)one;
        return (one(std::integral_constant<std::size_t, I>(), std::get<I>(values)) && ...);
    }

    template <auto Function> static ERL_NIF_TERM apply(ErlNifEnv *env, std::tuple<T...> &&values)
    {
        const auto value = [&]() -> decltype(auto) {
            return std::apply(
                [&](auto &&...v) -> decltype(auto) {
                    if constexpr (WithEnv)
                        return Function(tame::env(env), std::move(v)...);
                    else
                        return Function(std::move(v)...);
                },
                std::move(values));
        };

        if constexpr (std::is_void_v<R>)
            return (value(), enif_make_atom(env, "ok"));
        else
            return tame::make(env, value());
    }
};

template <class Function> struct signature;
template <class R, class... A> struct signature<R (*)(A...)> : plain<false, R, bare<A>...> {
};
template <class R, class... A> struct signature<R (*)(env, A...)> : plain<true, R, bare<A>...> {
};
template <class R, class... A> struct signature<R (*)(A...) noexcept> : signature<R (*)(A...)> {
};
template <class R, class... A>
struct signature<R (*)(env, A...) noexcept> : signature<R (*)(env, A...)> {
};

using nif_function = ERL_NIF_TERM (*)(ErlNifEnv *, int, const ERL_NIF_TERM[]);

struct typed_nif {
    nif_function function;
    int arity;

    constexpr operator nif_function() const
    {
        return function;
    }
};

/* Whether the row's arity is that of its types; one that is written as in C has none. */
constexpr bool fits(const tame_job &, int)
{
    return true;
}
constexpr bool fits(const typed_job &job, int arity)
{
    return job.arity == arity;
}
constexpr bool fits(nif_function, int)
{
    return true;
}
constexpr bool fits(const typed_nif &nif, int arity)
{
    return nif.arity == arity;
}

/* ---- struct tame_library ---- */

template <class Data> int load(ErlNifEnv *env, void **data, ERL_NIF_TERM info) noexcept
{
    ERL_NIF_TERM reason = 0;
    struct load_failure {
        ErlNifEnv *env;
        ERL_NIF_TERM *reason;

        void fail(ERL_NIF_TERM term) const
        {
            *reason = term;
        }
        void badarg(int, const char *sentence) const
        {
            fail(make_bytes(env, sentence, std::strlen(sentence)));
        }
    };

    (void)info;
    *data = guarded(load_failure{env, &reason}, static_cast<Data *>(nullptr), [&] {
        if constexpr (std::is_constructible_v<Data, tame::env, term>)
            return new Data(tame::env(env), term(info));
        else
            return new Data();
    });
    if (*data == nullptr)
        enif_fprintf(stderr, "tame: the library's data is not made: %T\n", reason);
    return *data == nullptr;
}

template <class Data> void unload(ErlNifEnv *, void *data) noexcept
{
    delete static_cast<Data *>(data);
}

template <class... T> struct types_of {
    static constexpr const tame_resource *all[] = {&type_of<T>::value..., nullptr};
};

struct typed_library : tame_library {
    /* Contexts go over to a library that is loaded anew: both know them by the same structs. */
    constexpr typed_library upgrade_keeps() const
    {
        typed_library library = *this;

        library.upgrade = TAME_UPGRADE_KEEPS;
        return library;
    }
    /* Each instance has a Data, made with Data(tame::env, tame::term load_info) or Data(), and deleted
     * with the instance. */
    template <class Data> constexpr typed_library data() const
    {
        typed_library library = *this;

        library.load = impl::load<Data>;
        library.unload = impl::unload<Data>;
        return library;
    }
};

template <class... T> constexpr typed_library make_library()
{
    typed_library library{};

    library.resources = types_of<T...>::all;
    return library;
}

} // namespace impl

/* For a row of the table: NIF(new_nif, 1, tame::nif<&make_counter>, TAME_INLINE). The function takes
 * values, after a tame::env if it wants one, and returns one. */
template <auto Function>
inline constexpr impl::typed_nif nif = {
    impl::signature<decltype(Function)>::template call<Function>,
    impl::signature<decltype(Function)>::arity};

/* The library's contexts; more by .data<T>() and .upgrade_keeps(). */
template <class... Contexts>
inline constexpr impl::typed_library library = impl::make_library<Contexts...>();

/* What library<...>.data<Data>() made. On a scheduler: in a NIF, a constructor, build and result. */
template <class Data> Data &data(ErlNifEnv *env)
{
    return *static_cast<Data *>(tame_data(env));
}

} // namespace tame

#define TAME_IMPL_CPP_CHECK(NAME, ARITY, WHAT, PLACEMENT)                      \
    static_assert(tame::impl::fits(WHAT, ARITY),                               \
                  "tame: the arity of the row " #NAME " is not the number of " \
                  "arguments that its types have");

/* TAME_NIF_INIT for a table with rows in C++; after FUNCTIONS a tame::library. */
#define TAME_CPP_INIT(MODULE, FUNCTIONS, ...)           \
    FUNCTIONS(TAME_IMPL_CPP_CHECK, TAME_IMPL_CPP_CHECK) \
    TAME_NIF_INIT(MODULE, FUNCTIONS, __VA_ARGS__)

#endif
