/* tame.hpp - a job in C++ is one struct and one line.
 *
 * tame.h with types, for C++17 and newer: the state is a struct with a constructor, a destructor and
 * members such as std::string; arguments and results are C++ values; exceptions become errors.
 * Header-only, as tame.h, which has what is said nowhere here: placements, slices, threads, limits.
 *
 *   docs/guide/well_behaved_nif.md   section 8: a library, and how it is built
 *   docs/reference/tame_hpp.md       types, errors, contexts, streams, what it costs
 *
 *     #include <tame.hpp>
 *
 *     struct sum {
 *         explicit sum(tame::binary bytes) : bytes(bytes) {}
 *         size_t units() const { return bytes.size(); }
 *         tame_status step(size_t units)
 *         {
 *             for (; units > 0 && done < bytes.size(); units--)
 *                 total += bytes[done++];
 *             return done == bytes.size() ? TAME_DONE : TAME_MORE;
 *         }
 *         uint64_t result() const { return total; }
 *
 *         tame::binary bytes;
 *         size_t done = 0;
 *         uint64_t total = 0;
 *     };
 *
 *     #define FUNCTIONS(JOB, NIF) JOB(sum_nif, 1, tame::job<sum(tame::binary)>, TAME_AUTO)
 *     TAME_CPP_INIT(sum, FUNCTIONS, tame::library<>)
 */
#ifndef TAME_HPP
#define TAME_HPP

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "tame.hpp is for C++17 and newer; tame.h is for C and older C++"
#endif

#include "tame.h"

#include "tame/cpp/nif.hpp"

#endif
