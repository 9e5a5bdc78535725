// Counts the words of a text, a piece at a time. Plain C++: no VM is needed to try it.
#ifndef COUNTER_HPP
#define COUNTER_HPP

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

// A word is what lies between bytes that are no letters of ASCII and no part of another UTF-8 character;
// its ASCII letters count as small ones.
class counter
{
  public:
    using counts = std::unordered_map<std::string, uint64_t>;

    // A table that is full is made anew as a whole, which takes long when it is large. So there are many
    // small ones.
    counter() : tables_(256)
    {
    }

    // A word may go on in the next piece; finish ends the last one.
    void feed(std::string_view piece)
    {
        for (const char c : piece) {
            const auto byte = static_cast<unsigned char>(c);

            if (byte >= 0x80 || static_cast<unsigned>((byte | 0x20) - 'a') < 26)
                word_ += static_cast<char>(byte < 0x80 ? byte | 0x20 : byte);
            else
                finish();
            if (word_.size() > longest)
                throw std::length_error("a word of more than 1000 bytes");
        }
    }
    void finish()
    {
        if (!word_.empty())
            tables_[std::hash<std::string>()(word_) % tables_.size()][word_]++;
        word_.clear();
    }

    // Takes one word out, and frees its memory with it. Returns false when there is none.
    bool take(std::pair<std::string, uint64_t> &one)
    {
        while (!tables_.empty() && tables_.back().empty())
            tables_.pop_back();
        if (tables_.empty())
            return false;
        auto node = tables_.back().extract(tables_.back().begin());
        one = {std::move(node.key()), node.mapped()};
        return true;
    }

  private:
    static constexpr std::size_t longest = 1000;

    std::vector<counts> tables_;
    std::string word_;
};

#endif
