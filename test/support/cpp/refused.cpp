// What does not compile, each with a sentence of its own.
#include <tame.hpp>

struct good {
    explicit good(int)
    {
    }
    tame_status step(size_t)
    {
        return TAME_DONE;
    }
    void result()
    {
    }
};

struct throwing_move : good {
    using good::good;
    throwing_move(throwing_move &&from) noexcept(false) : good(from)
    {
    }
};

struct throwing_end : good {
    using good::good;
    ~throwing_end() noexcept(false)
    {
    }
};

struct stepless {
    explicit stepless(int)
    {
    }
    void result()
    {
    }
};

struct fruitless {
    explicit fruitless(int)
    {
    }
    tame_status step(size_t)
    {
        return TAME_DONE;
    }
};

struct alignas(64) aligned : good {
    using good::good;
};

struct nested_view : good {
    explicit nested_view(const std::vector<std::string_view> &) : good(1)
    {
    }
};

struct context {
    static constexpr const char *resource = "context";
};

struct unclaimed : good {
    explicit unclaimed(tame::resource<context>) : good(1)
    {
    }
};

struct two_claims : good {
    two_claims(tame::claim<context>, tame::claim<context>) : good(1)
    {
    }
};

struct unknown : good {
    explicit unknown(const char *) : good(1)
    {
    }
};

struct no_terms : good {
    explicit no_terms(tame::iodata) : good(1)
    {
    }
};

#define FUNCTIONS(JOB, NIF)                                                                 \
    JOB(a, 1, tame::job<throwing_move(int)>, TAME_AUTO)                                     \
    JOB(b, 1, tame::job<throwing_end(int)>, TAME_AUTO)                                      \
    JOB(c, 1, tame::job<stepless(int)>, TAME_AUTO)                                          \
    JOB(d, 1, tame::job<fruitless(int)>, TAME_AUTO)                                         \
    JOB(e, 1, tame::job<aligned(int)>, TAME_AUTO)                                           \
    JOB(f, 1, tame::job<nested_view(std::vector<std::string_view>)>, TAME_AUTO)             \
    JOB(g, 1, tame::job<unclaimed(tame::resource<context>)>, TAME_AUTO)                     \
    JOB(h, 2, tame::job<two_claims(tame::claim<context>, tame::claim<context>)>, TAME_AUTO) \
    JOB(i, 1, tame::job<unknown(const char *)>, TAME_AUTO)                                  \
    JOB(j, 1, tame::job<no_terms(tame::iodata)>, TAME_AUTO)                                 \
    JOB(k, 1, tame::job<good(std::string_view)>, TAME_AUTO)                                 \
    JOB(l, 3, tame::job<good(int)>, TAME_AUTO)
TAME_CPP_INIT(refused, FUNCTIONS, tame::library<>)
