/* tame/cpp/containers.hpp - lists, tuples and maps as the standard library's containers.
 *
 * Part of tame.hpp. They are read and made in one go: 10,000 integers take some 0.1 ms. What may be
 * longer is better walked in steps, as terms, and made in `build`. */
#ifndef TAME_CPP_CONTAINERS_HPP
#define TAME_CPP_CONTAINERS_HPP

#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "codec.hpp"

namespace TAME_IMPL_HIDDEN tame
{

template <class T> struct codec<std::vector<T>> {
    static constexpr auto noun = text("a list, each element ") + impl::noun_of<T>::value;

    static bool get(ErlNifEnv *env, ERL_NIF_TERM term, std::vector<T> &value)
    {
        ERL_NIF_TERM head;
        unsigned size;

        if (!enif_get_list_length(env, term, &size)) /* no proper list */
            return false;
        value.reserve(size);
        while (enif_get_list_cell(env, term, &head, &term)) {
            T element{};

            if (!codec<T>::get(env, head, element))
                return false;
            value.push_back(std::move(element));
        }
        return true;
    }
    static ERL_NIF_TERM make(ErlNifEnv *env, const std::vector<T> &value)
    {
        ERL_NIF_TERM list = enif_make_list(env, 0);

        for (auto i = value.size(); i-- > 0;)
            list = enif_make_list_cell(env, codec<T>::make(env, value[i]), list);
        return list;
    }
};

namespace impl
{

template <class Last> constexpr auto listed()
{
    return noun_of<Last>::value;
}

template <class First, class Second, class... Rest> constexpr auto listed()
{
    return noun_of<First>::value + text(", ") + listed<Second, Rest...>();
}

template <class Tuple, class... Elements> struct tuple_codec {
    static_assert(sizeof...(Elements) > 0, "tame: a tuple without elements says nothing");
    static constexpr auto noun = text("a tuple {") + listed<Elements...>() + text("}");

    static bool get(ErlNifEnv *env, ERL_NIF_TERM term, Tuple &value)
    {
        const ERL_NIF_TERM *elements;
        int size;

        return enif_get_tuple(env, term, &size, &elements) && size == sizeof...(Elements) &&
               get(env, elements, value, std::index_sequence_for<Elements...>());
    }
    static ERL_NIF_TERM make(ErlNifEnv *env, const Tuple &value)
    {
        return make(env, value, std::index_sequence_for<Elements...>());
    }

  private:
    template <std::size_t... I>
    static bool get(ErlNifEnv *env, const ERL_NIF_TERM *elements, Tuple &value,
                    std::index_sequence<I...>)
    {
        return (codec<Elements>::get(env, elements[I], std::get<I>(value)) && ...);
    }
    template <std::size_t... I>
    static ERL_NIF_TERM make(ErlNifEnv *env, const Tuple &value, std::index_sequence<I...>)
    {
        const ERL_NIF_TERM elements[] = {codec<Elements>::make(env, std::get<I>(value))...};

        return enif_make_tuple_from_array(env, elements, sizeof...(Elements));
    }
};

/* Put by put: a map of many keys at once cannot be made on every thread
 * (docs/reference/threads.md). */
template <class Map> struct map_codec {
    using key = typename Map::key_type;
    using mapped = typename Map::mapped_type;
    static constexpr auto noun = text("a map, each key ") + noun_of<key>::value +
                                 text(", each value ") + noun_of<mapped>::value;

    static bool get(ErlNifEnv *env, ERL_NIF_TERM term, Map &value)
    {
        iterator at(env, term);

        if (!at.is_map)
            return false;
        for (ERL_NIF_TERM k, v; enif_map_iterator_get_pair(env, &at.position, &k, &v);
             enif_map_iterator_next(env, &at.position)) {
            key one{};
            mapped other{};

            if (!codec<key>::get(env, k, one) || !codec<mapped>::get(env, v, other))
                return false;
            value.emplace(std::move(one), std::move(other));
        }
        return true;
    }
    static ERL_NIF_TERM make(ErlNifEnv *env, const Map &value)
    {
        ERL_NIF_TERM map = enif_make_new_map(env);

        for (const auto &[one, other] : value)
            (void)enif_make_map_put(env, map, codec<key>::make(env, one),
                                    codec<mapped>::make(env, other), &map);
        return map;
    }

  private:
    struct iterator {
        ErlNifEnv *env;
        ErlNifMapIterator position;
        bool is_map;

        iterator(ErlNifEnv *in, ERL_NIF_TERM term)
            : env(in),
              is_map(enif_map_iterator_create(in, term, &position, ERL_NIF_MAP_ITERATOR_FIRST) != 0)
        {
        }
        iterator(const iterator &) = delete;
        iterator &operator=(const iterator &) = delete;
        ~iterator()
        {
            if (is_map)
                enif_map_iterator_destroy(env, &position);
        }
    };
};

} // namespace impl

template <class A, class B>
struct codec<std::pair<A, B>> : impl::tuple_codec<std::pair<A, B>, A, B> {
};
template <class... T> struct codec<std::tuple<T...>> : impl::tuple_codec<std::tuple<T...>, T...> {
};
template <class K, class V, class C, class A>
struct codec<std::map<K, V, C, A>> : impl::map_codec<std::map<K, V, C, A>> {
};
template <class K, class V, class H, class E, class A>
struct codec<std::unordered_map<K, V, H, E, A>>
    : impl::map_codec<std::unordered_map<K, V, H, E, A>> {
};

namespace impl
{

/* Whether a value of the type is good only as long as the term that it was read from. */
template <class T> struct borrows : std::false_type {
};
template <> struct borrows<std::string_view> : std::true_type {
};
template <> struct borrows<binary> : std::true_type {
};
template <class T> struct borrows<std::vector<T>> : borrows<T> {
};
template <class... T> struct borrows<std::tuple<T...>> : std::disjunction<borrows<T>...> {
};
template <class A, class B>
struct borrows<std::pair<A, B>> : std::disjunction<borrows<A>, borrows<B>> {
};
template <class K, class V, class C, class A>
struct borrows<std::map<K, V, C, A>> : std::disjunction<borrows<K>, borrows<V>> {
};
template <class K, class V, class H, class E, class A>
struct borrows<std::unordered_map<K, V, H, E, A>> : std::disjunction<borrows<K>, borrows<V>> {
};

} // namespace impl
} // namespace tame

#endif
