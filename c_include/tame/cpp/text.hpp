/* tame/cpp/text.hpp - sentences that the compiler puts together from types.
 *
 * Part of tame.hpp. "must be a list, each element an integer from 0 to 255" is a constant of the
 * library: a refusal allocates nothing. */
#ifndef TAME_CPP_TEXT_HPP
#define TAME_CPP_TEXT_HPP

#include <cstddef>
#include <cstdint>

/* A library has one copy of what lies in this namespace, and no other library of the VM sees it. A
 * class that is the member of an author's says for itself that it may be one: the compiler warns of
 * a hidden type in a struct that is not. */
#define TAME_IMPL_HIDDEN [[gnu::visibility("hidden")]]
#define TAME_IMPL_SEEN [[gnu::visibility("default")]]

namespace TAME_IMPL_HIDDEN tame
{

template <std::size_t Size> struct text {
    char chars[Size + 1] = {};

    constexpr text() = default;
    constexpr text(const char (&literal)[Size + 1])
    {
        for (std::size_t i = 0; i < Size; i++)
            chars[i] = literal[i];
    }
};

template <std::size_t Size> text(const char (&)[Size]) -> text<Size - 1>;

template <std::size_t A, std::size_t B>
constexpr text<A + B> operator+(const text<A> &a, const text<B> &b)
{
    text<A + B> both;

    for (std::size_t i = 0; i < A; i++)
        both.chars[i] = a.chars[i];
    for (std::size_t i = 0; i < B; i++)
        both.chars[A + i] = b.chars[i];
    return both;
}

namespace impl
{

/* The distance from 0, also of the least number that there is. */
template <class T> constexpr std::uint64_t magnitude(T value)
{
    return value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
}

template <auto Value> constexpr std::size_t decimal_size()
{
    std::size_t size = Value < 0 ? 2 : 1;

    for (std::uint64_t rest = magnitude(Value); rest >= 10; rest /= 10)
        size++;
    return size;
}

/* Value in decimal. */
template <auto Value> constexpr auto decimal()
{
    text<decimal_size<Value>()> digits;
    std::uint64_t rest = magnitude(Value);

    for (std::size_t i = decimal_size<Value>(); i-- > (Value < 0 ? 1 : 0);) {
        digits.chars[i] = static_cast<char>('0' + rest % 10);
        rest /= 10;
    }
    if (Value < 0)
        digits.chars[0] = '-';
    return digits;
}

} // namespace impl
} // namespace tame

#endif
