// The second of two files of one NIF library in C++; see include_one.cpp. It has a row's value too, so
// that both files have the functions that the header makes of it.
#include "include_two.hpp"

reversal::reversal(std::vector<std::string> of) : parts(std::move(of))
{
    if (parts.size() > tame::job<reversal(std::vector<std::string>)>.state_size)
        throw tame::error(tame::atom("too_long"), parts);
}

tame_status reversal::step(size_t)
{
    if (done < parts.size() / 2) {
        std::swap(parts[done], parts[parts.size() - 1 - done]);
        done++;
    }
    return done < parts.size() / 2 ? TAME_MORE : TAME_DONE;
}

const std::vector<std::string> &reversal::result() const
{
    return parts;
}
