/* tame/cpp/resource.hpp - contexts as classes: made with a constructor, destroyed with a destructor,
 * claimed by type.
 *
 * Part of tame.hpp. A class that is a context says under which name the VM knows it, and the library
 * lists it (TAME_CPP_INIT):
 *
 *     struct counter { static constexpr const char *resource = "counter"; ... }; */
#ifndef TAME_CPP_RESOURCE_HPP
#define TAME_CPP_RESOURCE_HPP

#include <stdexcept>

#include "../context.h"
#include "error.hpp"

namespace TAME_IMPL_HIDDEN tame
{

namespace impl
{

/* What lies in the VM's memory: zeros, until the constructor has returned. */
template <class T> struct context {
    alignas(T) unsigned char storage[sizeof(T)];
    bool lives;

    T *object()
    {
        return std::launder(reinterpret_cast<T *>(storage));
    }
};

template <class T> void context_end(ErlNifEnv *, void *memory) noexcept
{
    auto *header = static_cast<tame_impl_context *>(memory);
    auto *held = static_cast<context<T> *>(tame_impl_context_object(header));

    static_assert(std::is_nothrow_destructible_v<T>,
                  "tame: the destructor of a context throws nothing");
    static_assert(alignof(context<T>) <= TAME_IMPL_ALIGNMENT,
                  "tame: a context has no member that needs more than 16-byte alignment");
    if (header->instance == nullptr)
        return;
    if (held->lives)
        held->object()->~T();
    tame_impl_context_end(header);
}

template <class T> struct type_of {
    static constexpr tame_resource value = {T::resource, sizeof(context<T>), &context_end<T>};
};

template <class T> constexpr auto type_name()
{
    text<std::char_traits<char>::length(T::resource)> name;

    for (std::size_t i = 0; T::resource[i] != 0; i++)
        name.chars[i] = T::resource[i];
    return name;
}

/* Points to a context. */
template <class T> class TAME_IMPL_SEEN pointer
{
  public:
    TAME_IMPL_HIDDEN pointer() = default;
    TAME_IMPL_HIDDEN explicit pointer(T *to) : to_(to)
    {
    }
    TAME_IMPL_HIDDEN T &operator*() const
    {
        return *to_;
    }
    TAME_IMPL_HIDDEN T *operator->() const
    {
        return to_;
    }

  private:
    T *to_ = nullptr;
};

} // namespace impl

/* An argument of a plain NIF: a context, which lives as long as the call. A job may hold it at the same
 * time: what its steps write needs a lock, or a claim, to be read. */
template <class T> class TAME_IMPL_SEEN resource : public impl::pointer<T>
{
  public:
    using impl::pointer<T>::pointer;
};

/* An argument of a job: a context that the call has alone until its struct is destroyed. Others wait,
 * first come first served. It may be a member: the context stays where it is. */
template <class T> class TAME_IMPL_SEEN claim : public impl::pointer<T>
{
  public:
    using impl::pointer<T>::pointer;
};

template <class T> struct codec<resource<T>> {
    static constexpr auto noun = text("a resource of the type ") + impl::type_name<T>();

    static bool get(ErlNifEnv *env, ERL_NIF_TERM term, resource<T> &value)
    {
        void *object = tame_resource_get(env, term, &impl::type_of<T>::value);

        if (object == nullptr)
            return false;
        value = resource<T>(static_cast<impl::context<T> *>(object)->object());
        return true;
    }
};

/* A new context, constructed from these arguments, as a term, which owns it. */
template <class T, class... Args> term make_resource(ErlNifEnv *env, Args &&...args)
{
    struct holder {
        void *memory;

        ~holder() /* the context ends with it, as one that was never constructed */
        {
            if (memory != nullptr)
                enif_release_resource(tame_impl_context_of(memory));
        }
    };
    holder held{tame_resource_new(env, &impl::type_of<T>::value)};

    if (held.memory == nullptr) {
#ifdef __cpp_exceptions
        if (tame_impl_type(env, &impl::type_of<T>::value) == nullptr)
            throw std::logic_error(std::string("the library does not list the type ") +
                                   T::resource);
#endif
        impl::no_memory();
    }
    auto *made = static_cast<impl::context<T> *>(held.memory);
    ::new (static_cast<void *>(made->storage)) T(std::forward<Args>(args)...);
    made->lives = true;
    return term(tame_resource_term(env, std::exchange(held.memory, nullptr)));
}

} // namespace tame

#endif
