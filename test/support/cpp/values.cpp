// A job and a plain NIF of each type that stands for a term: they give back what they got. Built with
// exceptions and without.
#include <tame.hpp>

struct point {
    int16_t x, y;
};

template <> struct tame::codec<point> {
    static constexpr auto noun = tame::text("a point {X, Y}");
    using pair = std::pair<int16_t, int16_t>;

    static bool get(ErlNifEnv *env, ERL_NIF_TERM term, point &value)
    {
        pair of;
        const bool is = codec<pair>::get(env, term, of);
        value = {of.first, of.second};
        return is;
    }
    static ERL_NIF_TERM make(ErlNifEnv *env, point value)
    {
        return codec<pair>::make(env, {value.x, value.y});
    }
};

// Only made, so it has no noun; alone and within others.
struct mark {
};

template <> struct tame::codec<mark> {
    static ERL_NIF_TERM make(ErlNifEnv *env, mark)
    {
        return enif_make_atom(env, "mark");
    }
};

// Only read, and has none either.
struct any {
};

template <> struct tame::codec<any> {
    static bool get(ErlNifEnv *env, ERL_NIF_TERM term, any &)
    {
        return !enif_is_atom(env, term);
    }
};

namespace
{

template <class T> struct echo {
    explicit echo(T value) : value(std::move(value))
    {
    }
    tame_status step(size_t)
    {
        return TAME_DONE;
    }
    T result() const
    {
        return value;
    }
    T value;
};

// A term is valid in its slice alone: it is kept in a root.
struct echo_term {
    static constexpr bool terms = true;

    echo_term(tame::call &call, tame::term value)
    {
        call.root(3) = value.value();
    }
    tame_status step(tame::call &call, size_t)
    {
        return call.root(0) == enif_make_list(call.env(), 0) ? TAME_DONE
                                                             : call.fail(tame::atom("not_empty"));
    }
    tame::term result(tame::call &call)
    {
        return tame::term(call.root(3));
    }
};

// No value at all; made by `make`, which may refuse; six arguments, numbered as in Erlang.
struct nothing {
    static std::optional<nothing> make(tame::call &call, int a, bool, std::string_view, double,
                                       const std::vector<int> &, const tame::atom &f)
    {
        if (f == "no")
            (void)call.badarg(6, "must be another atom than no");
        else if (a < 0)
            (void)call.fail(tame::atom("negative"), a);
        else
            return nothing();
        return std::nullopt;
    }
    tame_status step(size_t)
    {
        return TAME_DONE;
    }
    void result()
    {
    }
};

using atoms = std::vector<tame::atom>;

// Two atoms; the name of the second has that length.
atoms named(uint32_t size)
{
    return {tame::atom("a"), tame::atom(std::string(size, 'x'))};
}

struct names {
    explicit names(uint32_t size) : size(size)
    {
    }
    tame_status step(size_t)
    {
        return TAME_DONE;
    }
    atoms result() const
    {
        return named(size);
    }
    uint32_t size;
};

// A failure, or a part, that is no term.
struct reasonless {
    tame_status step(tame::call &call, size_t)
    {
        return tame_fail(call.c_call(), 0);
    }
    void result()
    {
    }
};
struct partless {
    tame_status step(tame::call &call, size_t)
    {
        return tame_emit(call.c_call(), 0);
    }
    void result()
    {
    }
};

template <class T> T same(T value)
{
    return value;
}

void ok()
{
}

std::string_view second(tame::env, std::string_view, std::string_view b) noexcept
{
    return b;
}

std::tuple<mark, std::vector<mark>> marks(std::vector<any>)
{
    return {mark(), {mark(), mark()}};
}

// No term, and nothing says why; and an exception that was raised already.
tame::term no_term()
{
    return tame::term();
}

tame::term raised(tame::env env)
{
    return tame::term(enif_make_badarg(env));
}

using list = std::vector<int64_t>;
using nested = std::vector<std::tuple<tame::atom, std::vector<std::string>>>;
using triple = std::tuple<uint8_t, bool, double>;
using pair = std::pair<std::string, int>;
using map = std::map<std::string, int>;
using hash = std::unordered_map<int, std::vector<bool>>;

} // namespace

// clang-format off
#define ECHO(JOB, NIF, NAME, ...)                                           \
    JOB(NAME##_nif, 1, tame::job<echo<__VA_ARGS__>(__VA_ARGS__)>, TAME_AUTO) \
    NIF(NAME##_plain, 1, tame::nif<&same<__VA_ARGS__>>, TAME_INLINE)
#define FUNCTIONS(JOB, NIF)                                                     \
    ECHO(JOB, NIF, i8, int8_t) ECHO(JOB, NIF, u8, uint8_t)                      \
    ECHO(JOB, NIF, i16, int16_t) ECHO(JOB, NIF, u16, uint16_t)                  \
    ECHO(JOB, NIF, i32, int32_t) ECHO(JOB, NIF, u32, uint32_t)                  \
    ECHO(JOB, NIF, i64, int64_t) ECHO(JOB, NIF, u64, uint64_t)                  \
    ECHO(JOB, NIF, longlong, long long) ECHO(JOB, NIF, real, double)            \
    ECHO(JOB, NIF, boolean, bool) ECHO(JOB, NIF, atom, tame::atom)              \
    ECHO(JOB, NIF, string, std::string) ECHO(JOB, NIF, view, std::string_view)  \
    ECHO(JOB, NIF, bytes, tame::binary) ECHO(JOB, NIF, list, list)              \
    ECHO(JOB, NIF, nested, nested) ECHO(JOB, NIF, triple, triple)               \
    ECHO(JOB, NIF, pair, pair) ECHO(JOB, NIF, map, map)                         \
    ECHO(JOB, NIF, hash, hash) ECHO(JOB, NIF, point, point)                     \
    JOB(term_nif, 1, tame::job<echo_term(tame::term)>, TAME_YIELDING)           \
    NIF(term_plain, 1, tame::nif<&same<tame::term>>, TAME_DIRTY_CPU)            \
    JOB(nothing_nif, 6, tame::job<nothing>, TAME_POOL)                          \
    JOB(names_nif, 1, tame::job<names(uint32_t)>, TAME_AUTO)                    \
    NIF(named_plain, 1, tame::nif<&named>, TAME_INLINE)                         \
    JOB(reasonless_nif, 0, tame::job<reasonless()>, TAME_AUTO)                  \
    JOB(partless_nif, 0, tame::job<partless()>, TAME_AUTO)                      \
    JOB(partless_pool_nif, 0, tame::job<partless()>, TAME_POOL)                 \
    JOB(reasonless_pool_nif, 0, tame::job<reasonless()>, TAME_POOL)             \
    NIF(marks_plain, 1, tame::nif<&marks>, TAME_INLINE)                         \
    NIF(no_term_plain, 0, tame::nif<&no_term>, TAME_INLINE)                     \
    NIF(raised_plain, 0, tame::nif<&raised>, TAME_INLINE)                       \
    NIF(ok_plain, 0, tame::nif<&ok>, TAME_DIRTY_IO)                             \
    NIF(second_plain, 2, tame::nif<&second>, TAME_INLINE)
// clang-format on
TAME_CPP_INIT(values, FUNCTIONS, tame::library<>)
