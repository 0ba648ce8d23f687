// A transaction adds a note under its client and number, and one to the balance of an account of that client's.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

inline std::string big_endian(uint64_t value, int bytes)
{
    std::string text;
    for (int at = bytes - 1; at >= 0; at--)
        text.push_back(static_cast<char>(value >> (8 * at)));
    return text;
}

inline uint64_t number_of(const std::string &text)
{
    uint64_t value = 0;
    for (unsigned char byte : text)
        value = value << 8 | byte;
    return value;
}

inline std::string note_key(uint32_t client, uint64_t number)
{
    return "n" + big_endian(client, 4) + big_endian(number, 8);
}

inline uint64_t sum_of(const std::string &key)
{
    uint64_t sum = 0xcbf29ce484222325; // FNV-1a
    for (unsigned char byte : key)
        sum = (sum ^ byte) * 0x100000001b3;
    return sum;
}

inline std::string content_of(const std::string &key)
{
    std::string text;
    for (uint64_t left = 4 + sum_of(key) % 32; left > 0; left--)
        text += big_endian(sum_of(key), 8);
    return text;
}

inline std::string balance_key(uint32_t client, const std::string &key)
{
    return "b" + big_endian(client, 4) + big_endian(sum_of(key) % 50, 4);
}

// The value of `--NAME=VALUE`; of the last where it is given twice.
inline std::string option(int count, char **words, const std::string &name, std::string value)
{
    const std::string begin = "--" + name + "=";
    for (int at = 2; at < count; at++)
        if (std::strncmp(words[at], begin.c_str(), begin.size()) == 0)
            value = words[at] + begin.size();
    return value;
}

[[noreturn]] inline void fail(const std::string &why)
{
    std::fprintf(stderr, "%s\n", why.c_str());
    std::exit(1);
}

// What is there, key by key in their order, and what is wrong with it.
class Answer {
  public:
    std::vector<std::string> refused;

    void look(const std::string &key, const std::string &value)
    {
        const auto client = static_cast<uint32_t>(number_of(key.substr(1, 4)));
        if (key[0] == 'b') {
            balances[key] = number_of(value);
            return;
        }
        const uint64_t number = number_of(key.substr(5));
        const std::string whose = "client " + std::to_string(client) + ": ";
        if (number != last[client] + 1)
            wrong.push_back(whose + std::to_string(number) + " follows " + std::to_string(last[client]));
        if (value != content_of(key))
            wrong.push_back(whose + "note " + std::to_string(number) + " is not what was written");
        last[client] = number;
        due[balance_key(client, key)]++;
    }

    void print()
    {
        if (refused.empty() && balances != due)
            wrong.push_back("the balances are not the sums of the notes");
        std::string clients;
        for (const auto &[client, number] : last)
            clients += (clients.empty() ? "\"" : ", \"") + std::to_string(client) + "\": " + std::to_string(number);
        std::printf("{\"clients\": {%s}, \"wrong\": [%s], \"refused\": [%s]}\n", clients.c_str(), list(wrong).c_str(), list(refused).c_str());
    }

  private:
    std::map<uint32_t, uint64_t> last;
    std::map<std::string, uint64_t> balances, due;
    std::vector<std::string> wrong;

    // Quotes and backslashes of an engine's own words are left out.
    static std::string list(const std::vector<std::string> &lines)
    {
        std::string text;
        for (size_t at = 0; at < lines.size() && at < 20; at++) {
            text += at == 0 ? "\"" : ", \"";
            for (char letter : lines[at])
                text += letter == '"' || letter == '\\' || letter < ' ' ? ' ' : letter;
            text += "\"";
        }
        return text;
    }
};
