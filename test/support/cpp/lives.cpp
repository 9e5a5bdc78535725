// Jobs whose structs are counted, hold memory of their own, throw where they are told, and keep views of
// their arguments.
#include <tame.hpp>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "everywhere.hpp"

// Throws while its term is made, or has none.
struct unmade {
    std::string what;
};

[[noreturn]] static void raise(const std::string &what);

template <> struct tame::codec<unmade> {
    static constexpr auto noun = tame::text("none that is read");

    static ERL_NIF_TERM make(ErlNifEnv *, const unmade &value)
    {
        if (value.what == "nothing")
            return 0;
        raise(value.what);
    }
};

[[noreturn]] static void raise(const std::string &what)
{
    if (what == "bad_alloc")
        throw std::bad_alloc();
    if (what == "badarg")
        throw tame::badarg(2, "must be something else");
    if (what == "error")
        throw tame::error(tame::atom("reason"), 17, std::string("text"));
    if (what == "plain")
        throw tame::error(tame::atom("reason"));
    if (what == "long_atom")
        throw tame::error(tame::atom("unknown"), tame::atom(std::string(256, 'x')));
    if (what == "invalid_argument")
        throw std::invalid_argument("what it says");
    if (what == "no_term")
        throw tame::error(unmade{"nothing"});
    if (what.rfind("unmade_", 0) == 0)
        throw tame::error(tame::atom("unmade"), unmade{what.substr(7)});
    throw 17;
}

namespace
{

std::atomic<int64_t> made, living;

// Counted from constructor to destructor, moves included; owns memory, so what is destroyed twice or
// never is found by the address sanitizer as well.
class counted
{
  public:
    counted() : text_(100, 'x'), short_("short")
    {
        made++;
        living++;
    }
    counted(counted &&from) noexcept : text_(std::move(from.text_)), short_(std::move(from.short_))
    {
        living++;
    }
    counted(const counted &) = delete;
    ~counted()
    {
        living--;
    }
    bool whole() const
    {
        return text_.size() == 100 && short_ == "short";
    }

  private:
    std::string text_, short_;
};

// Throws `what` in the function `where`; as {ok, whole} else.
struct thrower {
    thrower(tame::atom where, tame::atom what, uint32_t steps)
        : where(where.name()), what(what.name()), left(steps)
    {
        at("constructor");
        counts.emplace(1, std::vector<int>(10, 1));
    }
    void at(const char *here)
    {
        if (where == here)
            raise(what);
    }
    size_t units()
    {
        at("units");
        return left;
    }
    tame_status step(size_t units)
    {
        at("first_step");
        left -= left < units ? left : units;
        if (left == 0)
            at("last_step");
        return left == 0 ? TAME_DONE : TAME_MORE;
    }
    tame_status build(tame::call &call, size_t units)
    {
        if (++built > 3)
            at("build");
        call.root(0) =
            enif_make_list_cell(call.env(), enif_make_uint64(call.env(), units), call.root(0));
        return built < 6 ? TAME_MORE : TAME_DONE;
    }
    std::tuple<tame::atom, bool> result(tame::call &call)
    {
        at("result");
        return {tame::atom("ok"), count.whole() && counts.at(1).size() == 10 &&
                                      !enif_is_empty_list(call.env(), call.root(0))};
    }

    counted count;
    std::string where, what;
    std::unordered_map<int, std::vector<int>> counts;
    uint32_t left;
    int built = 0;
};

// By `make`, with exceptions.
struct maker {
    static maker make(tame::atom what, const std::map<std::string, int> &)
    {
        if (what != "ok")
            raise(what.name());
        return maker();
    }
    tame_status step(size_t)
    {
        return TAME_DONE;
    }
    bool result() const
    {
        return count.whole();
    }
    counted count;
};

// Views of its arguments, which it looks at again in each step; a unit is about a microsecond.
struct viewer {
    viewer(std::string_view small, std::string_view large, tame::binary other, uint32_t units)
        : small(small), large(large), other(other), sums(sum()), left(units)
    {
    }
    uint64_t sum() const
    {
        const auto add = [](uint64_t sum, unsigned char c) { return sum * 31 + c; };
        const std::string_view end = large.size() < 400 ? large : large.substr(large.size() - 400);
        uint64_t all = 0;

        for (unsigned char c : small)
            all = add(all, c);
        for (unsigned char c : end)
            all = add(all, c);
        return std::accumulate(other.begin(), other.end(), all, add);
    }
    tame_status step(size_t units)
    {
        for (; units > 0 && left > 0; units--, left--)
            if (sum() != sums)
                throw std::runtime_error("the bytes are others");
        return left == 0 ? TAME_DONE : TAME_MORE;
    }
    std::tuple<bool, std::string_view, std::string_view> result() const
    {
        return {count.whole() && sum() == sums, small, large.substr(0, 10)};
    }
    std::string_view small, large;
    tame::binary other;
    counted count;
    uint64_t sums;
    uint32_t left;
};

// Emits numbers as texts, and throws after some.
struct emitter {
    emitter(uint32_t parts, uint32_t throws_at) : parts(parts), throws_at(throws_at)
    {
    }
    tame_status step(tame::call &call, size_t)
    {
        if (next == throws_at)
            throw tame::error(tame::atom("emitted"), next);
        return next == parts ? TAME_DONE : call.emit(std::to_string(next++));
    }
    void result()
    {
    }
    counted count;
    uint32_t parts, throws_at, next = 0;
};

// Iodata, copied to an output; the sizes of the chunks.
struct copier {
    static constexpr bool terms = true;

    copier(tame::iodata a, tame::iodata b) : from{a, b}
    {
    }
    tame_status step(tame::call &call, size_t units)
    {
        while (units-- > 0) {
            const std::string_view chunk = call.chunk(from[which]);

            if (done < chunk.size()) {
                out.append(call, chunk.substr(done++, 1));
            } else {
                const int more = call.next(from[which]);

                done = 0;
                if (more < 0)
                    throw tame::badarg(which + 1, "must be iodata");
                if (more == 0 && ++which == 2)
                    return TAME_DONE;
            }
        }
        return TAME_MORE;
    }
    tame::output result()
    {
        return std::move(out);
    }
    tame::iodata from[2];
    size_t done = 0;
    int which = 0;
    tame::output out;
    counted count;
};

// Grows to that number of bytes, in pieces, by each of the ways there are; each byte is its place modulo 251.
struct grower {
    explicit grower(uint32_t size) : size(size)
    {
    }
    tame_status step(tame::call &call, size_t units)
    {
        for (; units > 0 && out.size() < size; units--) {
            const size_t most = std::min<size_t>(size - out.size(), 1000);

            if (units % 2 == 0) {
                std::string bytes;

                for (size_t i = 0; i < most; i++)
                    bytes += static_cast<char>((out.size() + i) % 251);
                out.append(call, bytes);
            } else {
                const auto [to, room] = out.room(call, most);

                for (size_t i = 0; i < room; i++)
                    to[i] = static_cast<unsigned char>((out.size() + i) % 251);
                out.wrote(room);
                out.shrink(call, std::min<size_t>(out.size(), size));
            }
        }
        return out.size() < size ? TAME_MORE : TAME_DONE;
    }
    tame::output result()
    {
        return std::move(out);
    }
    uint32_t size;
    tame::output out;
    counted count;
};

// An output that is no member of the struct does not grow.
struct outsider {
    tame_status step(tame::call &call, size_t)
    {
        outs.emplace_back();
        outs.back().append(call, "a");
        return TAME_DONE;
    }
    void result()
    {
    }
    std::vector<tame::output> outs;
    counted count;
};

// A context, and what needs it alone.
struct counter {
    static constexpr const char *resource = "counter";

    explicit counter(int64_t from) : value(from)
    {
        if (from < 0)
            throw tame::badarg(1, "must not be negative");
    }
    counted count;
    int64_t value;
    std::atomic<bool> busy{false};
};

struct adder {
    static constexpr uint32_t slice_us = 50;

    adder(uint32_t times, tame::claim<counter> counter) : to(counter), times(times)
    {
        if (to->busy.exchange(true))
            throw std::runtime_error("two have it");
        held = true;
    }
    adder(adder &&from) noexcept
        : count(std::move(from.count)), to(from.to), times(from.times),
          held(std::exchange(from.held, false))
    {
    }
    ~adder()
    {
        if (held)
            to->busy = false;
    }
    tame_status step(size_t units)
    {
        for (; units > 0 && times > 0; units--, times--)
            to->value++;
        return times == 0 ? TAME_DONE : TAME_MORE;
    }
    int64_t result() const
    {
        return to->value;
    }
    counted count;
    tame::claim<counter> to;
    uint32_t times;
    bool held = false;
};

struct unlisted {
    static constexpr const char *resource = "unlisted";
};

struct config {
    config(tame::env env, tame::term info)
    {
        if (!enif_get_int(env, info.value(), &limit))
            throw std::invalid_argument("load_info must be an integer");
    }
    int limit = 0;
};

tame::term new_counter(tame::env env, int64_t from)
{
    return tame::make_resource<counter>(env, from);
}
tame::term new_unlisted(tame::env env)
{
    return tame::make_resource<unlisted>(env);
}
int64_t value(tame::resource<counter> of)
{
    return of->value;
}
std::tuple<int64_t, int64_t> counts()
{
    return {made.load(), living.load()};
}
int limit(tame::env env)
{
    return tame::data<config>(env).limit;
}
void throws(tame::atom what)
{
    if (what != "none")
        raise(what.name());
}

} // namespace

#define FUNCTIONS(JOB, NIF)                                                                   \
    EVERYWHERE(JOB, thrower, 3, tame::job<thrower(tame::atom, tame::atom, uint32_t)>)         \
    EVERYWHERE(JOB, viewer, 4,                                                                \
               tame::job<viewer(std::string_view, std::string_view, tame::binary, uint32_t)>) \
    EVERYWHERE(JOB, maker, 2, tame::job<maker>)                                               \
    EVERYWHERE(JOB, emitter, 2, tame::job<emitter(uint32_t, uint32_t)>)                       \
    EVERYWHERE(JOB, grower, 1, tame::job<grower(uint32_t)>)                                   \
    EVERYWHERE(JOB, adder, 2, tame::job<adder(uint32_t, tame::claim<counter>)>)               \
    JOB(outsider_nif, 0, tame::job<outsider()>, TAME_AUTO)                                    \
    JOB(copier_nif, 2, tame::job<copier(tame::iodata, tame::iodata)>, TAME_AUTO)              \
    NIF(new_counter, 1, tame::nif<&new_counter>, TAME_INLINE)                                 \
    NIF(new_unlisted, 0, tame::nif<&new_unlisted>, TAME_INLINE)                               \
    NIF(value, 1, tame::nif<&value>, TAME_DIRTY_CPU)                                          \
    NIF(counts, 0, tame::nif<&counts>, TAME_INLINE)                                           \
    NIF(limit, 0, tame::nif<&limit>, TAME_INLINE)                                             \
    NIF(throws, 1, tame::nif<&throws>, TAME_INLINE)
TAME_CPP_INIT(lives, FUNCTIONS, tame::library<counter>.data<config>())
