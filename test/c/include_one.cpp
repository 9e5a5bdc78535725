// The first of two files of one NIF library in C++; the other is include_two.cpp. Only this one has the
// function table.
#include <tame.hpp>
#include <tame.hpp>

#include "include_two.hpp"

#define FUNCTIONS(JOB, NIF) \
    JOB(reverse_nif, 1, tame::job<reversal(std::vector<std::string>)>, TAME_AUTO)
TAME_CPP_INIT(include_test, FUNCTIONS, tame::library<>)
