// The same work in a dirty NIF, written by hand: what the README compares the job with.
#include <erl_nif.h>
#include <cstring>

#include "counter.hpp"

namespace
{

ERL_NIF_TERM bytes(ErlNifEnv *env, std::string_view of)
{
    ERL_NIF_TERM made;

    std::memcpy(enif_make_new_binary(env, of.size(), &made), of.data(), of.size());
    return made;
}

ERL_NIF_TERM count(ErlNifEnv *env, int, const ERL_NIF_TERM argv[])
{
    ErlNifBinary text;
    ErlNifUInt64 least;

    if (!enif_inspect_binary(env, argv[0], &text) || !enif_get_uint64(env, argv[1], &least))
        return enif_make_badarg(env);
    try {
        counter counter;
        std::pair<std::string, uint64_t> word;
        std::vector<ERL_NIF_TERM> keys, values;
        ERL_NIF_TERM map;

        counter.feed({reinterpret_cast<const char *>(text.data), text.size});
        counter.finish();
        while (counter.take(word)) {
            if (word.second < least)
                continue;
            keys.push_back(bytes(env, word.first));
            values.push_back(enif_make_uint64(env, word.second));
        }
        enif_make_map_from_arrays(env, keys.data(), values.data(), keys.size(), &map);
        return map;
    } catch (const std::exception &e) {
        return enif_raise_exception(env, bytes(env, e.what()));
    }
}

ErlNifFunc functions[] = {{"count", 2, count, ERL_NIF_DIRTY_JOB_CPU_BOUND}};

} // namespace

ERL_NIF_INIT(by_hand, functions, nullptr, nullptr, nullptr, nullptr)
