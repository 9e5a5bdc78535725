// The job: the words of a text that occur at least so often, as a map. No call holds a scheduler for long,
// whatever the size of the text and of the map.
#include <tame.hpp>

#include "counter.hpp"

namespace
{

struct words {
    words(std::string_view text, uint64_t least) : text(text), least(least)
    {
    }
    std::size_t units() const // a unit is a byte
    {
        return text.size();
    }
    tame_status step(std::size_t units)
    {
        const std::string_view piece = text.substr(done, units);

        counter.feed(piece);
        done += piece.size();
        if (done < text.size())
            return TAME_MORE;
        counter.finish();
        return TAME_DONE;
    }
    // A unit is a word, which is put into the map that the root has.
    tame_status build(tame::call &call, std::size_t units)
    {
        std::pair<std::string, uint64_t> word;

        if (enif_is_empty_list(call.env(), call.root(0)))
            call.root(0) = enif_make_new_map(call.env());
        for (; units > 0; units--) {
            if (!counter.take(word))
                return TAME_DONE;
            if (word.second >= least)
                enif_make_map_put(call.env(), call.root(0), call.make(word.first).value(),
                                  call.make(word.second).value(), &call.root(0));
        }
        return TAME_MORE;
    }
    tame::term result(tame::call &call) const
    {
        return tame::term(call.root(0));
    }

    std::string_view text;
    uint64_t least;
    std::size_t done = 0;
    ::counter counter;
};

} // namespace

#define FUNCTIONS(JOB, NIF)                                                    \
    JOB(count_nif, 2, tame::job<words(std::string_view, uint64_t)>, TAME_AUTO) \
    JOB(count_yielding_nif, 2, tame::job<words(std::string_view, uint64_t)>, TAME_YIELDING)
TAME_CPP_INIT(words, FUNCTIONS, tame::library<>)
