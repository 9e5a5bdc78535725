/* tame/cpp/codec.hpp - which C++ type stands for which term: numbers, atoms, binaries.
 *
 * Part of tame.hpp. tame::codec<T> reads and makes the term of a T. An author may specialise it:
 *
 *     template <> struct tame::codec<point> {
 *         static constexpr auto noun = tame::text("a point {X, Y}");
 *         static bool get(ErlNifEnv *env, ERL_NIF_TERM term, point &value);
 *         static ERL_NIF_TERM make(ErlNifEnv *env, const point &value);
 *     };
 *
 * A type that is only read, or only made, needs only that. `noun` goes on after "must be "; one that
 * has none is "another term". */
#ifndef TAME_CPP_CODEC_HPP
#define TAME_CPP_CODEC_HPP

#include <cmath>
#include <cstring>
#include <erl_nif.h>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "text.hpp"

namespace TAME_IMPL_HIDDEN tame
{

namespace impl
{
template <class...> inline constexpr bool never = false;

template <class T> using bare = std::remove_cv_t<std::remove_reference_t<T>>;
} // namespace impl

template <class T, class = void> struct codec {
    static_assert(impl::never<T>,
                  "tame: no term stands for this type: specialise tame::codec for it "
                  "(docs/reference/tame_hpp.md lists the types that have one)");
};

namespace impl
{

/* What the codec of a type says that it reads. */
template <class T, class = void> struct noun_of {
    static constexpr auto value = text("another term");
};

template <class T> struct noun_of<T, std::void_t<decltype(codec<T>::noun)>> {
    static constexpr auto value = codec<T>::noun;
};

} // namespace impl

/* The term of a value. */
template <class T> ERL_NIF_TERM make(ErlNifEnv *env, T &&value)
{
    return codec<impl::bare<T>>::make(env, std::forward<T>(value));
}

/* A term as it is. An ERL_NIF_TERM alone is a number to the compiler, and would be made one. */
class TAME_IMPL_SEEN term
{
  public:
    TAME_IMPL_HIDDEN term() = default;
    TAME_IMPL_HIDDEN explicit term(ERL_NIF_TERM value) : value_(value)
    {
    }
    TAME_IMPL_HIDDEN ERL_NIF_TERM value() const
    {
        return value_;
    }

  private:
    ERL_NIF_TERM value_ = 0;
};

/* An environment, as it is passed from one function to the next. */
class TAME_IMPL_SEEN env
{
  public:
    TAME_IMPL_HIDDEN env(ErlNifEnv *from) : env_(from)
    {
    }
    TAME_IMPL_HIDDEN operator ErlNifEnv *() const
    {
        return env_;
    }
    template <class T> TAME_IMPL_HIDDEN term make(T &&value) const
    {
        return term(tame::make(env_, std::forward<T>(value)));
    }

  private:
    ErlNifEnv *env_;
};

/* An atom, by its name. */
class TAME_IMPL_SEEN atom
{
  public:
    TAME_IMPL_HIDDEN atom() = default;
    TAME_IMPL_HIDDEN explicit atom(std::string name) : name_(std::move(name))
    {
    }
    TAME_IMPL_HIDDEN const std::string &name() const
    {
        return name_;
    }
    TAME_IMPL_HIDDEN friend bool operator==(const atom &a, std::string_view name)
    {
        return a.name_ == name;
    }
    TAME_IMPL_HIDDEN friend bool operator!=(const atom &a, std::string_view name)
    {
        return a.name_ != name;
    }

  private:
    std::string name_;
};

/* The bytes of a binary, which are somebody else's: as std::string_view, of unsigned char. */
class TAME_IMPL_SEEN binary
{
  public:
    TAME_IMPL_HIDDEN binary() = default;
    TAME_IMPL_HIDDEN binary(const unsigned char *data, std::size_t size) : data_(data), size_(size)
    {
    }
    TAME_IMPL_HIDDEN const unsigned char *data() const
    {
        return data_;
    }
    TAME_IMPL_HIDDEN std::size_t size() const
    {
        return size_;
    }
    TAME_IMPL_HIDDEN const unsigned char *begin() const
    {
        return data_;
    }
    TAME_IMPL_HIDDEN const unsigned char *end() const
    {
        return data_ + size_;
    }
    TAME_IMPL_HIDDEN unsigned char operator[](std::size_t i) const
    {
        return data_[i];
    }

  private:
    const unsigned char *data_ = reinterpret_cast<const unsigned char *>("");
    std::size_t size_ = 0;
};

namespace impl
{

template <class T>
inline constexpr bool is_integer = std::is_integral_v<T> && sizeof(T) <= 8 &&
                                   !std::is_same_v<T, bool> && !std::is_same_v<T, char> &&
                                   !std::is_same_v<T, wchar_t> && !std::is_same_v<T, char16_t> &&
                                   !std::is_same_v<T, char32_t>;

inline ERL_NIF_TERM make_bytes(ErlNifEnv *env, const void *data, std::size_t size)
{
    ERL_NIF_TERM made;
    unsigned char *bytes = enif_make_new_binary(env, size, &made); /* the term's */

    if (size > 0)
        std::memcpy(bytes, data, size);
    return made;
}

} // namespace impl

template <class T> struct codec<T, std::enable_if_t<impl::is_integer<T>>> {
    using limits = std::numeric_limits<T>;
    static constexpr auto noun = text("an integer from ") + impl::decimal<limits::min()>() +
                                 text(" to ") + impl::decimal<limits::max()>();

    static bool get(ErlNifEnv *env, ERL_NIF_TERM term, T &value)
    {
        std::conditional_t<std::is_signed_v<T>, ErlNifSInt64, ErlNifUInt64> wide;

        if constexpr (std::is_signed_v<T>) {
            if (!enif_get_int64(env, term, &wide) || wide < limits::min() || wide > limits::max())
                return false;
        } else {
            if (!enif_get_uint64(env, term, &wide) || wide > limits::max())
                return false;
        }
        value = static_cast<T>(wide);
        return true;
    }
    static ERL_NIF_TERM make(ErlNifEnv *env, T value)
    {
        if constexpr (std::is_signed_v<T>)
            return enif_make_int64(env, value);
        else
            return enif_make_uint64(env, value);
    }
};

/* Made of one that is finite: Erlang has no other. */
template <> struct codec<double> {
    static constexpr auto noun = text("a float, or an integer of at most 64 bits");

    static bool get(ErlNifEnv *env, ERL_NIF_TERM term, double &value)
    {
        ErlNifSInt64 whole;
        ErlNifUInt64 positive;

        if (enif_get_double(env, term, &value))
            return true;
        if (enif_get_int64(env, term, &whole))
            value = static_cast<double>(whole);
        else if (enif_get_uint64(env, term, &positive))
            value = static_cast<double>(positive);
        else
            return false;
        return true;
    }
    static ERL_NIF_TERM make(ErlNifEnv *env, double value)
    {
        if (std::isfinite(value))
            return enif_make_double(env, value);
        return enif_make_atom(env, std::isnan(value) ? "nan"
                                   : value > 0       ? "infinity"
                                                     : "neg_infinity");
    }
};

template <> struct codec<bool> {
    static constexpr auto noun = text("true or false");

    static bool get(ErlNifEnv *env, ERL_NIF_TERM term, bool &value)
    {
        value = enif_is_identical(term, enif_make_atom(env, "true"));
        return value || enif_is_identical(term, enif_make_atom(env, "false"));
    }
    static ERL_NIF_TERM make(ErlNifEnv *env, bool value)
    {
        return enif_make_atom(env, value ? "true" : "false");
    }
};

template <> struct codec<atom> {
    static constexpr auto noun = text("an atom in Latin-1");
    static constexpr std::size_t most_chars = 255; /* in Latin-1 a character is a byte */

    static bool get(ErlNifEnv *env, ERL_NIF_TERM term, atom &value)
    {
        char name[most_chars + 1];
        const int size = enif_get_atom(env, term, name, sizeof name, ERL_NIF_LATIN1);

        if (size == 0)
            return false;
        /* With the 0 at its end; there may be others. */
        value = atom(std::string(name, static_cast<std::size_t>(size) - 1));
        return true;
    }
    /* A longer one is refused here: erl_nif would return no term, which ends the VM inside another. */
    static ERL_NIF_TERM make(ErlNifEnv *env, const atom &value)
    {
        if (value.name().size() <= most_chars)
            return enif_make_atom_len(env, value.name().data(), value.name().size());
#ifdef __cpp_exceptions
        throw std::length_error("an atom has at most 255 characters");
#else
        return enif_make_atom(env, "name_too_long");
#endif
    }
};

template <> struct codec<term> {
    static constexpr auto noun = text("a term");

    static bool get(ErlNifEnv *, ERL_NIF_TERM from, term &value)
    {
        value = term(from);
        return true;
    }
    static ERL_NIF_TERM make(ErlNifEnv *, term value)
    {
        return value.value();
    }
};

/* Valid as long as the NIF that looks; tame/cpp/arguments.hpp keeps those of a job. */
template <> struct codec<binary> {
    static constexpr auto noun = text("a binary");

    static bool get(ErlNifEnv *env, ERL_NIF_TERM term, binary &value)
    {
        ErlNifBinary bytes;

        if (!enif_inspect_binary(env, term, &bytes))
            return false;
        value = bytes.size > 0 ? binary(bytes.data, bytes.size) : binary();
        return true;
    }
    static ERL_NIF_TERM make(ErlNifEnv *env, binary value)
    {
        return impl::make_bytes(env, value.data(), value.size());
    }
};

template <> struct codec<std::string_view> {
    static constexpr auto noun = codec<binary>::noun;

    static bool get(ErlNifEnv *env, ERL_NIF_TERM term, std::string_view &value)
    {
        binary bytes;

        if (!codec<binary>::get(env, term, bytes))
            return false;
        value = {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
        return true;
    }
    static ERL_NIF_TERM make(ErlNifEnv *env, std::string_view value)
    {
        return impl::make_bytes(env, value.data(), value.size());
    }
};

template <> struct codec<std::string> {
    static constexpr auto noun = codec<binary>::noun;

    static bool get(ErlNifEnv *env, ERL_NIF_TERM term, std::string &value)
    {
        std::string_view bytes;

        if (!codec<std::string_view>::get(env, term, bytes))
            return false;
        value = bytes;
        return true;
    }
    static ERL_NIF_TERM make(ErlNifEnv *env, const std::string &value)
    {
        return impl::make_bytes(env, value.data(), value.size());
    }
};

} // namespace tame

#endif
