// What include_one.cpp uses of include_two.cpp: a struct whose functions are there.
#ifndef INCLUDE_TWO_HPP
#define INCLUDE_TWO_HPP

#include <tame.hpp>

struct reversal {
    explicit reversal(std::vector<std::string> parts);
    tame_status step(size_t units);
    const std::vector<std::string> &result() const;

    std::vector<std::string> parts;
    size_t done = 0;
};

#endif
