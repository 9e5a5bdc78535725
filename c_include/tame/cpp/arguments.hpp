/* tame/cpp/arguments.hpp - the arguments of a job, from terms to the parameters of a constructor.
 *
 * Part of tame.hpp. A std::string_view or tame::binary that a constructor is given stays valid, at the
 * same address, until the struct is destroyed, so it may be a member. The bytes of a binary of more
 * than 64 bytes lie outside the heaps of processes, where no garbage collection moves them, and the
 * library keeps the binary alive; a smaller one is copied. So are all in a host, to which each call
 * that a job takes brings its arguments anew. */
#ifndef TAME_CPP_ARGUMENTS_HPP
#define TAME_CPP_ARGUMENTS_HPP

#include <array>

#include "call.hpp"
#include "resource.hpp"

namespace TAME_IMPL_HIDDEN tame
{
namespace impl
{

template <class T> struct is_claim : std::false_type {
};
template <class T> struct is_claim<claim<T>> : std::true_type {
};
template <class T> struct is_resource : std::false_type {
};
template <class T> struct is_resource<resource<T>> : std::true_type {
};
template <class T>
struct is_view : std::disjunction<std::is_same<T, binary>, std::is_same<T, std::string_view>> {
};
template <class T> using is_iodata = std::is_same<T, iodata>;

/* How many of these types are so. */
template <template <class> class Is, class... T>
inline constexpr int count = (0 + ... + static_cast<int>(Is<T>::value));

/* The number of the first type that is so. */
template <template <class> class Is, class... T> constexpr int index_of()
{
    const bool is[] = {Is<T>::value..., true};
    int index = 0;

    while (!is[index])
        index++;
    return index;
}

/* The largest binary that may lie on the heap of a process, which moves it. */
constexpr std::size_t small_size = 64;

/* What the library keeps for the arguments; part of the state, beside the author's struct. Moved by
 * copying it. */
template <int Views, int Chunks> struct kept {
    std::array<tame_input, Views> inputs;               /* looked up anew in each slice */
    std::array<const unsigned char *, Views> addresses; /* where they were at first */
    unsigned char *small;                               /* copies; freed with the state */
    std::array<unsigned char *, Views> large;           /* the same */
    std::array<tame_iodata, Chunks> chunks;

    /* Whether the bytes lie where the struct has been told. */
    bool holds() const
    {
        for (int i = 0; i < Views; i++)
            if (inputs[i].data != addresses[i])
                return false;
        return true;
    }
};

/* Whether the bytes lie there wherever the job goes on. The VM has a part and its copy in one place; a host
 * copies short parts, so that this tells (c_src/host/term/copy.c). */
inline bool keeps_bytes(ErlNifEnv *env, ERL_NIF_TERM term, const tame_input &input)
{
    const ERL_NIF_TERM part = enif_make_sub_binary(env, term, 0, TAME_IMPL_NOT_COPIED);
    ErlNifBinary copy;

    return enif_inspect_binary(env, enif_make_copy(env, part), &copy) && copy.data == input.data;
}

template <class T> inline constexpr auto must_be = text("must be ") + noun_of<T>::value;

template <class T> struct argument {
    static_assert(
        !is_resource<T>::value,
        "tame: a job claims a context: take a tame::claim. (What an argument holds lives as "
        "long as a plain NIF, and not as long as a job.)");
    static_assert(
        !borrows<T>::value,
        "tame: a view inside a list, tuple or map is not kept for a job: take std::string");
    static_assert(std::is_default_constructible_v<T>,
                  "tame: a type that is read from a term has a default constructor");

    template <class Kept> static bool get(Kept &, tame_call *call, int arg, int, int, T &value)
    {
        if (codec<T>::get(call->env, call->argv[arg], value))
            return true;
        (void)tame_badarg(call, arg + 1, must_be<T>.chars);
        return false;
    }
};

template <> struct argument<binary> {
    template <class Kept>
    static bool get(Kept &kept, tame_call *call, int arg, int view, int, binary &value)
    {
        ErlNifBinary bytes;

        if (enif_is_binary(call->env, call->argv[arg]) &&
            enif_inspect_binary(call->env, call->argv[arg], &bytes) && bytes.size <= small_size) {
            if (bytes.size > 0) {
                if (kept.small == nullptr)
                    kept.small =
                        static_cast<unsigned char *>(enif_alloc(small_size * kept.inputs.size()));
                if (kept.small == nullptr)
                    no_memory();
                unsigned char *copy = kept.small + small_size * static_cast<std::size_t>(view);
                std::memcpy(copy, bytes.data, bytes.size);
                value = binary(copy, bytes.size);
            }
            return true;
        }
        tame_input &input = kept.inputs[static_cast<std::size_t>(view)];
        if (!tame_input_binary(call, arg, &input)) {
            (void)tame_badarg(call, arg + 1, must_be<binary>.chars);
            return false;
        }
        value = binary(input.data, input.size);
        if (keeps_bytes(call->env, call->argv[arg], input)) {
            kept.addresses[static_cast<std::size_t>(view)] = input.data;
            return true;
        }
        unsigned char *copy = static_cast<unsigned char *>(enif_alloc(input.size));
        if (copy == nullptr)
            no_memory();
        kept.large[static_cast<std::size_t>(view)] = copy;
        std::memcpy(copy, input.data, input.size);
        value = binary(copy, input.size);
        call->impl_inputs_len--; /* it is not looked up any more */
        input.data = nullptr;
        return true;
    }
};

template <> struct argument<std::string_view> {
    template <class Kept>
    static bool get(Kept &kept, tame_call *call, int arg, int view, int chunk,
                    std::string_view &value)
    {
        binary bytes;

        if (!argument<binary>::get(kept, call, arg, view, chunk, bytes))
            return false;
        value = {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
        return true;
    }
};

template <> struct argument<iodata> {
    template <class Kept>
    static bool get(Kept &kept, tame_call *call, int arg, int, int chunk, iodata &value)
    {
        value = iodata(chunk);
        if (tame_input_iodata(call, arg, 2 * chunk, &kept.chunks[static_cast<std::size_t>(chunk)]))
            return true;
        (void)tame_badarg(call, arg + 1, "must be a binary or a list of binaries");
        return false;
    }
};

template <class T> struct argument<claim<T>> {
    /* When another call has it: false, and init is called again. */
    template <class Kept>
    static bool get(Kept &, tame_call *call, int arg, int, int, claim<T> &value)
    {
        void *object = tame_claim(call, arg, &type_of<T>::value);

        if (object == nullptr)
            return false;
        value = claim<T>(static_cast<context<T> *>(object)->object());
        return true;
    }
};

template <class... T> struct arguments {
    static constexpr int claims = count<is_claim, T...>, views = count<is_view, T...>,
                         chunks = count<is_iodata, T...>;
    static_assert(sizeof...(T) <= TAME_MAX_ARGS,
                  "tame: a job takes at most TAME_MAX_ARGS arguments");
    static_assert(claims <= 1, "tame: a job claims one context at most");
    static_assert(2 * chunks <= TAME_MAX_ROOTS,
                  "tame: a job takes at most two arguments of iodata");
    using values = std::tuple<T...>;
    using keeps = kept<views, chunks>;

    /* Returns false when the call has been told why not. The claim comes first. */
    static bool get(keeps &kept, tame_call *call, values &all)
    {
        if constexpr (claims == 1) {
            constexpr int claimed = index_of<is_claim, T...>();
            using claim_type = std::tuple_element_t<claimed, values>;

            if (!argument<claim_type>::get(kept, call, claimed, 0, 0, std::get<claimed>(all)))
                return false;
        }
        return get(kept, call, all, std::index_sequence_for<T...>());
    }

  private:
    template <std::size_t... I>
    static bool get(keeps &kept, tame_call *call, values &all, std::index_sequence<I...>)
    {
        int view = 0, chunk = 0;
        const auto one = [&](auto number, auto &value) {
            using type = bare<decltype(value)>;

            if constexpr (is_claim<type>::value)
                return true;
            else
                return argument<type>::get(kept, call, static_cast<int>(number),
                                           is_view<type>::value ? view++ : 0,
                                           is_iodata<type>::value ? chunk++ : 0, value);
        };

        (void)one;
        return (one(std::integral_constant<std::size_t, I>(), std::get<I>(all)) && ...);
    }
};

} // namespace impl
} // namespace tame

#endif
