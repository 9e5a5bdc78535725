/* tame/cpp/job.hpp - a job from a struct: its constructor or `make`, its step, its result.
 *
 * Part of tame.hpp. tame::job<words(std::string_view, int)> is the job whose struct is constructed from
 * such arguments; tame::job<words> the one whose static function words::make says which. */
#ifndef TAME_CPP_JOB_HPP
#define TAME_CPP_JOB_HPP

#include <optional>

#include "arguments.hpp"

namespace TAME_IMPL_HIDDEN tame
{
namespace impl
{

/* What an author's struct may have besides step and result. */
#define TAME_IMPL_CPP_OPTION(NAME)                                                    \
    template <class Job, class = void> struct NAME##_of {                             \
        static constexpr std::uint32_t value = 0;                                     \
    };                                                                                \
    template <class Job> struct NAME##_of<Job, std::void_t<decltype(Job::NAME)>> {    \
        static constexpr std::uint32_t value = static_cast<std::uint32_t>(Job::NAME); \
    };
TAME_IMPL_CPP_OPTION(terms)
TAME_IMPL_CPP_OPTION(slice_us)
TAME_IMPL_CPP_OPTION(dirty_slice_us)
TAME_IMPL_CPP_OPTION(max_running)
TAME_IMPL_CPP_OPTION(max_waiting)
TAME_IMPL_CPP_OPTION(stack_kib)

/* Which of the forms of a member function the struct has. */
#define TAME_IMPL_CPP_HAS(NAME, CALL)                                                      \
    template <class Job, class = void> struct NAME : std::false_type {                     \
    };                                                                                     \
    template <class Job>                                                                   \
    struct NAME<Job, std::void_t<decltype(std::declval<Job &>().CALL)>> : std::true_type { \
    };
TAME_IMPL_CPP_HAS(has_units, units())
TAME_IMPL_CPP_HAS(has_step, step(std::size_t()))
TAME_IMPL_CPP_HAS(has_step_call, step(std::declval<call &>(), std::size_t()))
TAME_IMPL_CPP_HAS(has_build_call, build(std::declval<call &>(), std::size_t()))
TAME_IMPL_CPP_HAS(has_result, result())
TAME_IMPL_CPP_HAS(has_result_call, result(std::declval<call &>()))

/* The state: what is kept for the arguments, and the author's struct once it is constructed. */
template <class Job, class Arguments> struct frame {
    typename Arguments::keeps kept;
    bool lives;
    alignas(Job) unsigned char storage[sizeof(Job)];

    Job &job()
    {
        return *std::launder(reinterpret_cast<Job *>(storage));
    }
};

/* The functions of struct tame_job for a Job that is constructed by Maker from Arguments. */
template <class Job, class Maker, class Arguments> struct functions {
    using state_type = frame<Job, Arguments>;

    static_assert(
        std::is_nothrow_move_constructible_v<Job>,
        "tame: the struct of a job has a move constructor that is noexcept: the library moves "
        "it when the job first yields");
    static_assert(std::is_nothrow_destructible_v<Job>,
                  "tame: the destructor of a job throws nothing");
    static_assert(alignof(state_type) <= TAME_IMPL_ALIGNMENT,
                  "tame: the struct of a job has no member that needs more than 16-byte alignment");
    static_assert(has_step<Job>::value || has_step_call<Job>::value,
                  "tame: a job has a function tame_status step(size_t units), or "
                  "step(tame::call &, size_t units)");
    static_assert(has_result<Job>::value || has_result_call<Job>::value,
                  "tame: a job has a function result(), or result(tame::call &)");
    static_assert(Arguments::chunks == 0 || terms_of<Job>::value,
                  "tame: a job that reads tame::iodata has static constexpr bool terms = true");

    static state_type &state_of(void *state)
    {
        return *std::launder(static_cast<state_type *>(state));
    }

    static tame_status init(tame_call *c, void *memory) noexcept
    {
        state_type &state = *::new (memory) state_type();

        return guarded(call_failure(c), TAME_FAILED, [&] {
            typename Arguments::values values;
            call k(c, state.kept.chunks.data());

            if (!Arguments::get(state.kept, c, values) ||
                !Maker::construct(k, state.storage, std::move(values)))
                return TAME_FAILED;
            state.lives = true;
            if constexpr (has_units<Job>::value)
                return tame_ok(c, static_cast<std::uint64_t>(state.job().units()));
            else
                return tame_ok(c, TAME_UNKNOWN);
        });
    }

    /* Calls `function` with the struct, where its arguments are what they were. */
    template <class Result, class Function>
    static Result with(tame_call *c, void *memory, Result otherwise, Function &&function) noexcept
    {
        state_type &state = state_of(memory);

        if (!state.kept.holds()) {
            (void)tame_impl_fault(c, "binary_moved");
            return otherwise;
        }
        return guarded(call_failure(c), otherwise, [&] {
            call k(c, state.kept.chunks.data());

            return function(state.job(), k);
        });
    }

    static tame_status step(tame_call *c, void *memory, std::size_t units) noexcept
    {
        return with(c, memory, TAME_FAILED, [units](Job &job, call &k) -> tame_status {
            if constexpr (has_step_call<Job>::value)
                return job.step(k, units);
            else
                return ((void)k, job.step(units));
        });
    }

    static tame_status build(tame_call *c, void *memory, std::size_t units) noexcept
    {
        return with(c, memory, TAME_FAILED, [units](Job &job, call &k) -> tame_status {
            if constexpr (has_build_call<Job>::value)
                return job.build(k, units);
            else
                return ((void)job, (void)k, (void)units, TAME_DONE);
        });
    }

    static ERL_NIF_TERM result(tame_call *c, void *memory) noexcept
    {
        return with(c, memory, ERL_NIF_TERM(0), [](Job &job, call &k) -> ERL_NIF_TERM {
            const auto value = [&]() -> decltype(auto) {
                if constexpr (has_result_call<Job>::value)
                    return job.result(k);
                else
                    return job.result();
            };

            if constexpr (std::is_void_v<decltype(value())>)
                return (value(), enif_make_atom(k.env(), "ok"));
            else
                return tame::make(k.env(), value());
        });
    }

    static void cleanup(void *memory) noexcept
    {
        state_type &state = state_of(memory);

        if (state.lives)
            state.job().~Job();
        enif_free(state.kept.small);
        for (unsigned char *copy : state.kept.large)
            enif_free(copy);
    }

    static void move(void *to, void *from) noexcept
    {
        state_type &old = state_of(from);
        state_type &state = *::new (to) state_type();

        state.kept = old.kept;
        state.lives = old.lives;
        if (old.lives) {
            ::new (static_cast<void *>(state.storage)) Job(std::move(old.job()));
            old.job().~Job();
        }
    }
};

struct typed_job : tame_job {
    int arity;
};

template <class Job, class Maker, class... T> constexpr typed_job make_job()
{
    using all = functions<Job, Maker, arguments<T...>>;
    typed_job job{};

    job.state_size = sizeof(typename all::state_type);
    job.init = all::init;
    job.step = all::step;
    job.build = has_build_call<Job>::value ? all::build : nullptr;
    job.result = all::result;
    job.cleanup = all::cleanup;
    job.move = std::is_trivially_copyable_v<Job> ? nullptr : all::move;
    job.terms = terms_of<Job>::value;
    job.slice_us = slice_us_of<Job>::value;
    job.dirty_slice_us = dirty_slice_us_of<Job>::value;
    job.max_running = max_running_of<Job>::value;
    job.max_waiting = max_waiting_of<Job>::value;
    job.stack_kib = stack_kib_of<Job>::value;
    job.arity = sizeof...(T);
    return job;
}

/* By the constructor. */
template <class Job, class... T> struct constructor {
    static bool construct(call &k, void *storage, std::tuple<T...> &&values)
    {
        constexpr bool with_call = std::is_constructible_v<Job, call &, T...>;
        static_assert(
            with_call || std::is_constructible_v<Job, T...>,
            "tame: the struct of the job has no constructor from these arguments, with or "
            "without a tame::call & before them");

        std::apply(
            [&](auto &&...value) {
                if constexpr (with_call)
                    ::new (storage) Job(k, std::move(value)...);
                else
                    ::new (storage) Job(std::move(value)...);
            },
            std::move(values));
        return true;
    }
};

/* By Job::make, which returns a Job, or std::optional<Job>: none when it has told the call why. */
template <class Job, class Make, bool WithCall, class... T> struct factory {
    static bool construct(call &k, void *storage, std::tuple<T...> &&values)
    {
        const auto made = [&] {
            return std::apply(
                [&](auto &&...value) {
                    if constexpr (WithCall)
                        return Job::make(k, std::move(value)...);
                    else
                        return Job::make(std::move(value)...);
                },
                std::move(values));
        };

        (void)k;
        if constexpr (std::is_same_v<Make, Job>) {
            ::new (storage) Job(made());
            return true;
        } else {
            static_assert(std::is_same_v<Make, std::optional<Job>>,
                          "tame: make returns the struct of the job, or a std::optional of it");
            Make job = made();

            if (job)
                ::new (storage) Job(std::move(*job));
            return job.has_value();
        }
    }
};

template <class Job, class Function> struct from_make {
    static_assert(never<Function>, "tame: make is a static function that is not overloaded");
};
template <class Job, class R, class... A> struct from_make<Job, R (*)(A...)> {
    static constexpr typed_job value =
        make_job<Job, factory<Job, R, false, bare<A>...>, bare<A>...>();
};
template <class Job, class R, class... A> struct from_make<Job, R (*)(call &, A...)> {
    static constexpr typed_job value =
        make_job<Job, factory<Job, R, true, bare<A>...>, bare<A>...>();
};
template <class Job, class R, class... A>
struct from_make<Job, R (*)(A...) noexcept> : from_make<Job, R (*)(A...)> {
};
template <class Job, class R, class... A>
struct from_make<Job, R (*)(call &, A...) noexcept> : from_make<Job, R (*)(call &, A...)> {
};

template <class Job> struct row : from_make<Job, decltype(&Job::make)> {
};
template <class Job, class... A> struct row<Job(A...)> {
    static constexpr typed_job value = make_job<Job, constructor<Job, bare<A>...>, bare<A>...>();
};

} // namespace impl

/* For a row of the table: JOB(count_nif, 1, tame::job<words(std::string_view)>, TAME_AUTO). */
template <class Job> inline constexpr const impl::typed_job &job = impl::row<Job>::value;

} // namespace tame

#endif
