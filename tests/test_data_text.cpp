// Files, UTF-8 and the character tokenizer.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "handgrad/core/error.h"
#include "handgrad/data/char_tokenizer.h"
#include "handgrad/data/text.h"
#include "handgrad/data/utf8.h"
#include "handgrad/io/files.h"
#include "paths.h"
#include "temporary_folder.h"

using namespace handgrad;
using namespace handgrad::data;
using namespace handgrad::io;
using Tokens = std::vector<std::int32_t>;
namespace fs = std::filesystem;

namespace {

// A folder with a space and an accent in its name, gone at the end of the test.
class Folder {
 public:
  Folder() : path_(temporary_.path() / fs::path(u8"data t\u00e9st")) { fs::create_directories(path_); }

  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }
  const fs::path& path() const { return path_; }

 private:
  TemporaryFolder temporary_;
  fs::path path_;
};

template <typename Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string encode_error(std::string_view text) {
  return message_of([&] { CharTokenizer::from_text("abc").encode(text); });
}

std::string not_utf8(const std::string& rest) {
  return "char tokenizer: text must be UTF-8, but byte " + rest + "\n  try: save the text as UTF-8";
}

}  // namespace

TEST_CASE("data: an error has its parts as fields and in its text") {
  const Error error("\"a.txt\"", "3 tokens, need at least 5", {{"tokens", "3"}, {"context_length", "4"}},
                    "a longer text");
  CHECK(std::string(error.what()) ==
        "\"a.txt\": 3 tokens, need at least 5\n  tokens 3   context_length 4\n  try: a longer text");
  CHECK(error.op() == "\"a.txt\"");
  CHECK(error.message() == "3 tokens, need at least 5");
  CHECK(error.operands()[1].name == "context_length");
  CHECK(error.operands()[1].text == "4");
  CHECK(error.advice() == "a longer text");
  CHECK(std::string(Error("a", "b").what()) == "a: b");
}

TEST_CASE("utf8: every code point survives writing and reading") {
  int read = 0;
  for (char32_t value = 0; value <= 0x10FFFF; ++value) {
    if (value >= 0xD800 && value <= 0xDFFF) continue;
    std::string text = "x";
    append_code_point(text, value);
    const CodePoint code_point = read_code_point(text, 1);
    if (code_point.valid() && code_point.value == value &&
        static_cast<std::size_t>(code_point.length) + 1 == text.size())
      ++read;
  }
  CHECK(read == 0x110000 - 0x800);
}

TEST_CASE("utf8: known characters have their published bytes") {
  const std::pair<char32_t, std::string> known[] = {
      {U'A', "A"}, {0xE9, "\xC3\xA9"}, {0x20AC, "\xE2\x82\xAC"}, {0x1F389, "\xF0\x9F\x8E\x89"}, {0, {'\0'}}};
  for (const auto& [value, bytes] : known) {
    std::string text;
    append_code_point(text, value);
    CHECK(text == bytes);
  }
}

TEST_CASE("utf8: of all two-byte, three-byte and four-byte beginnings exactly the valid ones are read") {
  // Counts of valid sequences follow from the ranges of the standard: 0x80, 0x800 - 0x80, ...
  int two = 0, three = 0;
  for (int first = 0x80; first < 0x100; ++first)
    for (int second = 0; second < 0x100; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      if (read_code_point(text, 0).valid()) ++two;
      for (int third = 0; third < 0x100; ++third)
        if (const CodePoint point = read_code_point(text + static_cast<char>(third), 0);
            point.valid() && point.length == 3)
          ++three;
    }
  CHECK(two == 0x800 - 0x80);
  CHECK(three == 0x10000 - 0x800 - 0x800);  // without the surrogates
  CHECK_FALSE(read_code_point("\xF0\x8F\xBF\xBF", 0).valid());
  CHECK(read_code_point("\xF0\x90\x80\x80", 0).value == 0x10000);
  CHECK(read_code_point("\xF4\x8F\xBF\xBF", 0).value == 0x10FFFF);
  CHECK_FALSE(read_code_point("\xF4\x90\x80\x80", 0).valid());
}

TEST_CASE("utf8: a character that the end cuts off is told apart from a wrong one") {
  const std::string party = "\xF0\x9F\x8E\x89";
  for (std::size_t length = 1; length < 4; ++length)
    CHECK(read_code_point(party.substr(0, length), 0).cut_off);
  CHECK_FALSE(read_code_point(party, 0).cut_off);
  CHECK_FALSE(read_code_point("\xF0(", 0).cut_off);
}

TEST_CASE("utf8: a character that would not be seen is named by its number alone") {
  CHECK(name_of_code_point(U'z') == "\"z\" (U+007A)");
  CHECK(name_of_code_point(0xE9) == "\"\xC3\xA9\" (U+00E9)");
  CHECK(name_of_code_point(0x1F389) == "\"\xF0\x9F\x8E\x89\" (U+1F389)");
  for (const char32_t value :
       {0x00u, 0x0Au, 0x20u, 0x7Fu, 0xA0u, 0xADu, 0x301u, 0x200Bu, 0x2029u, 0xE000u, 0xFEFFu})
    CHECK(name_of_code_point(value).starts_with("U+"));
  CHECK(name_of_code_point(7) == "U+0007");
}

TEST_CASE("char tokenizer: ids follow the order of the code points") {
  const auto tokenizer = CharTokenizer::from_text("z\xC3\xA9\na\xE2\x82\xAC z");
  CHECK(tokenizer.vocab_size() == 6);
  CHECK(tokenizer.type() == "char");
  CHECK(tokenizer.encode("\n az\xC3\xA9\xE2\x82\xAC") == Tokens{0, 1, 2, 3, 4, 5});
  CHECK(tokenizer.encode("") == Tokens{});
  CHECK(tokenizer.token(4) == "\xC3\xA9");
  CHECK(tokenizer.decode(Tokens{5, 3, 3}) == "\xE2\x82\xACzz");
  CHECK(tokenizer.decode(Tokens{}) == "");
}

TEST_CASE("char tokenizer: a text comes back byte by byte, a byte-order mark and a zero too") {
  const std::string text =
      std::string("\xEF\xBB\xBF") + "a\r\n" + std::string(1, '\0') + "e\xCC\x81 \xF0\x9F\x8E\x89";
  const auto tokenizer = CharTokenizer::from_text(text);
  CHECK(tokenizer.vocab_size() == 9);  // the mark, a, return, new line, zero, e, the accent, space, the party
  CHECK(tokenizer.encode(text).size() == 9);
  CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
}

TEST_CASE("char tokenizer: a character that it does not know is named with its place") {
  CHECK(encode_error("abz") ==
        "char tokenizer: every character must be one of the 3 it knows, got \"z\" (U+007A) at character 2, "
        "byte "
        "offset 2");
  const auto accents = CharTokenizer::from_text("\xC3\xA9\xC3\xA8");
  CHECK(message_of([&] { accents.encode("\xC3\xA9\xC3\xA8\xE2\x82\xAC"); }) ==
        "char tokenizer: every character must be one of the 2 it knows, got \"\xE2\x82\xAC\" (U+20AC) at "
        "character "
        "2, byte offset 4");
  CHECK(message_of([&] { accents.encode("\xC3\xA9\xC3\xAA"); }) ==
        "char tokenizer: every character must be one of the 2 it knows, got \"\xC3\xAA\" (U+00EA) at "
        "character 1, "
        "byte offset 2");
  CHECK(message_of([&] { accents.encode("\xC3\x80"); }) ==  // below both
        "char tokenizer: every character must be one of the 2 it knows, got \"\xC3\x80\" (U+00C0) at "
        "character 0, "
        "byte offset 0");
  CHECK(encode_error("a\t") ==
        "char tokenizer: every character must be one of the 3 it knows, got U+0009 at character 1, byte "
        "offset 1");
  CHECK(encode_error("\xEF\xBB\xBF") ==
        "char tokenizer: every character must be one of the 3 it knows, got U+FEFF at character 0, byte "
        "offset 0");
}

TEST_CASE("char tokenizer: bytes that are not UTF-8 are rejected with their offset") {
  CHECK(encode_error("ab\xC3") ==
        not_utf8("0xC3 at byte offset 2 begins a character that the text cuts off"));
  CHECK(encode_error("a\xE2\x82") ==
        not_utf8("0xE2 at byte offset 1 begins a character that the text cuts off"));
  CHECK(encode_error("a\xC3(") ==
        not_utf8("0xC3 at byte offset 1 begins a character that the next bytes do not continue"));
  CHECK(encode_error("\xF0\x9F\x8E(") ==
        not_utf8("0xF0 at byte offset 0 begins a character that the next bytes do not continue"));
  CHECK(encode_error("ab\x80") == not_utf8("0x80 at byte offset 2 is a continuation without a beginning"));
  CHECK(encode_error("\xC0\x80") == not_utf8("0xC0 at byte offset 0 is an overlong form"));
  CHECK(encode_error("\xC1\xBF") == not_utf8("0xC1 at byte offset 0 is an overlong form"));
  CHECK(encode_error("\xE0\x9F\xBF") == not_utf8("0xE0 at byte offset 0 is an overlong form"));
  CHECK(encode_error("\xF0\x8F\xBF\xBF") == not_utf8("0xF0 at byte offset 0 is an overlong form"));
  CHECK(encode_error("\xED\xA0\x80") == not_utf8("0xED at byte offset 0 is a surrogate"));
  CHECK(encode_error("\xED\xBF\xBF") == not_utf8("0xED at byte offset 0 is a surrogate"));
  CHECK(encode_error("\xF4\x90\x80\x80") == not_utf8("0xF4 at byte offset 0 is above U+10FFFF"));
  CHECK(encode_error("\xF5\x80\x80\x80") == not_utf8("0xF5 at byte offset 0 is above U+10FFFF"));
  CHECK(encode_error("\xFF") == not_utf8("0xFF at byte offset 0 never occurs in UTF-8"));
  CHECK(message_of([] { CharTokenizer::from_text("caf\xE9"); }) ==
        not_utf8("0xE9 at byte offset 3 begins a character that the text cuts off"));
}

TEST_CASE("char tokenizer: an empty text and ids outside the vocabulary are rejected") {
  CHECK(message_of([] { CharTokenizer::from_text(""); }) ==
        "char tokenizer: needs at least one character, got an empty text");
  const auto tokenizer = CharTokenizer::from_text("abc");
  CHECK(message_of([&] { tokenizer.token(3); }) == "char tokenizer: an id must be from 0 to 2, got 3");
  CHECK(message_of([&] {
          tokenizer.decode(Tokens{0, -1});
        }) == "char tokenizer: an id must be from 0 to 2, got -1");
}

TEST_CASE("tokenizer: JSON holds all that is needed to have it again") {
  const std::string text = "b\xC3\xA9\n\"\\a";
  const auto tokenizer = CharTokenizer::from_text(text);
  const nlohmann::json json = tokenizer.to_json();
  CHECK(json == nlohmann::json{{"type", "char"}, {"characters", "\n\"\\ab\xC3\xA9"}});
  const auto again = tokenizer_from_json(nlohmann::json::parse(json.dump()));
  CHECK(again->encode(text) == tokenizer.encode(text));
  CHECK(again->vocab_size() == 6);
  CHECK(again->to_json() == json);
}

TEST_CASE("tokenizer: JSON that does not describe a tokenizer is rejected with the key") {
  const auto error_of = [](const char* json) {
    return message_of([&] { tokenizer_from_json(nlohmann::json::parse(json)); });
  };
  CHECK(error_of("[]") == "tokenizer: must be an object with a key \"type\"");
  CHECK(error_of("{}") == "tokenizer: must be an object with a key \"type\"");
  CHECK(error_of(R"({"type": "chars"})") == "tokenizer: /type: unknown tokenizer \"chars\" (known: char)");
  CHECK(error_of(R"({"type": 3})") == "tokenizer: /type: unknown tokenizer 3 (known: char)");
  const std::string must_be =
      "char tokenizer: /characters: must be a string with every character of the vocabulary";
  CHECK(error_of(R"({"type": "char"})") == must_be);
  CHECK(error_of(R"({"type": "char", "characters": ["a"]})") == must_be);
  CHECK(error_of(R"({"type": "char", "characters": ""})") ==
        "char tokenizer: /characters: must not be empty");
  const std::string order =
      "char tokenizer: /characters: must be in the order of their numbers, each once, got ";
  CHECK(error_of(R"({"type": "char", "characters": "ba"})") ==
        order + "\"a\" (U+0061) after \"b\" (U+0062) at character 1");
  CHECK(error_of(R"({"type": "char", "characters": "abb"})") ==
        order + "\"b\" (U+0062) after \"b\" (U+0062) at character 2");
}

TEST_CASE("text file: H81 H105 bytes are read unchanged, but a byte-order mark is dropped and reported") {
  const Folder folder;
  const TextFile plain = read_text_file(folder.write("a b.txt", "one\r\ntwo\xFF"));
  CHECK(plain.text == "one\r\ntwo\xFF");
  CHECK_FALSE(plain.had_byte_order_mark);

  const TextFile marked = read_text_file(folder.write("marked.txt", "\xEF\xBB\xBFone \xEF\xBB\xBF"));
  CHECK(marked.text == "one \xEF\xBB\xBF");
  CHECK(marked.had_byte_order_mark);

  CHECK(read_text_file(folder.write("empty.txt", "")).text.empty());
  const std::string large(300'000, 'x');
  CHECK(read_text_file(folder.write("large.txt", large)).text == large);
}

TEST_CASE("text file: H105 what cannot be read is named in quotes with the reason") {
  const Folder folder;
  const auto error_of = [](const fs::path& path) { return message_of([&] { read_text_file(path); }); };
  const std::string quote = "\"";
  CHECK(error_of(folder.path() / "no.txt") ==
        quote + folder.path().string() + "/no.txt\": cannot be opened: No such file or directory");
  CHECK(error_of(folder.path()) == quote + folder.path().string() + "\": need a file, got a folder");
  const fs::path file = folder.write("file", "x");
  CHECK(error_of(file / "below") == quote + file.string() + "/below\": cannot be opened: Not a directory");
  const fs::path bad("/proc/self/mem");  // opens, but has nothing at its beginning
  if (fs::exists(bad))
    CHECK(error_of(bad) == "\"/proc/self/mem\": cannot be read to its end: Input/output error");
}

TEST_CASE("text: the file is read, encoded and split") {
  const Folder folder;
  TextOptions options;
  options.path = folder.write("letters.txt",
                              "\xEF\xBB\xBF"
                              "abcdefghij");
  options.val_fraction = 0.3;
  options.context_length = 2;
  const Text text = load_text(options);
  CHECK(text.had_byte_order_mark);
  CHECK(text.tokenizer->vocab_size() == 10);  // the held-back h, i and j are known too
  CHECK(text.tokenizer->decode(text.training.ids()) == "abcdefg");
  CHECK(text.tokenizer->decode(text.validation.ids()) == "hij");

  options.val_fraction = 0;
  CHECK(load_text(options).training.size() == 10);
  CHECK(load_text(options).validation.size() == 0);
}

TEST_CASE("text: a tokenizer that is given is used, and what it does not know names the file") {
  const Folder folder;
  TextOptions options;
  options.path = folder.write("t.txt", "bab");
  options.val_fraction = 0;
  options.tokenizer = std::make_shared<CharTokenizer>(CharTokenizer::from_text("abcd"));
  const Text text = load_text(options);
  CHECK(text.tokenizer == options.tokenizer);
  CHECK(Tokens(text.training.ids().begin(), text.training.ids().end()) == Tokens{1, 0, 1});

  folder.write("t.txt", "bax");
  const std::string name = "\"" + options.path.string() + "\": ";
  CHECK(
      message_of([&] { load_text(options); }) ==
      name +
          "char tokenizer: every character must be one of the 4 it knows, got \"x\" (U+0078) at character 2, "
          "byte offset 2");
  folder.write("t.txt", "");
  options.tokenizer = nullptr;
  CHECK(message_of([&] { load_text(options); }) ==
        name + "char tokenizer: needs at least one character, got an empty text");
  folder.write("t.txt", "a");
  options.context_length = 1;
  CHECK(message_of([&] { load_text(options); }) ==
        name +
            "1 token, need at least 2\n  context_length 1, and one more token, the last target\n"
            "  try: a smaller context_length or a longer text");
}

TEST_CASE("boats.txt: 6,033 ASCII characters, 33 of them distinct, 604 for validation") {
  TextOptions options;
  options.path = fs::path(HANDGRAD_SOURCE_DIR) / "data" / "boats.txt";
  options.val_fraction = 0.1;
  options.context_length = 16;
  const Text text = load_text(options);
  CHECK(text.training.size() == 5429);
  CHECK(text.validation.size() == 604);
  CHECK(text.tokenizer->vocab_size() == 33);
  CHECK(text.tokenizer->token(0) == "\n");
  CHECK(text.tokenizer->token(32) == "y");
  CHECK_FALSE(text.had_byte_order_mark);
  // Every character of the validation text occurs in the training text.
  const std::set<std::int32_t> learned(text.training.ids().begin(), text.training.ids().end());
  for (const std::int32_t id : text.validation.ids()) CHECK(learned.contains(id));
}
