// Reading configs: every message in full, what is noted of each key, and strict JSON.
#include <doctest/doctest.h>

#include <clocale>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "decimal_comma.h"
#include "expect.h"
#include "handgrad/io/fields.h"
#include "handgrad/io/json_text.h"
#include "handgrad/io/near_match.h"

using namespace handgrad;
using io::ConfigError;
using io::Fields;

namespace {

Fields fields_of(const char* text) { return Fields(io::parse_json(text, "toy.json"), {"toy.json"}); }

template <class Read>
std::string error_of(const char* text, const Read& read) {
  return expect::message<ConfigError>([&] {
    Fields fields = fields_of(text);
    read(fields);
    fields.finish();
  });
}

std::string parse_error(std::string_view text) {
  return expect::message<ConfigError>([&] { io::parse_json(text, "toy.json"); });
}

const auto read_steps = [](Fields& f) { f.integer("steps", {.doc = "updates", .at_least = 1}); };
const auto read_rate = [](Fields& f) { f.number("rate", {.at_least = 0, .less_than = 1}); };

}  // namespace

TEST_CASE("fields: values of every kind, and defaults") {
  Fields f =
      fields_of(R"({"steps": 300, "whole": 1e4, "lr": 1e-2, "tie": true, "init": "book", "betas": [0.9, 0.95],
                           "freeze": ["*.scale"], "norm": {"eps": 1}})");
  CHECK(f.integer("steps") == 300);
  CHECK(f.integer("whole") == 10000);
  CHECK(f.integer("layers", {.fallback = 7}) == 7);
  CHECK(f.number("lr") == 1e-2);
  CHECK(f.number("decay", {.fallback = 0.5}) == 0.5);
  CHECK(f.boolean("tie"));
  CHECK(!f.boolean("bias", {.fallback = false}));
  CHECK(f.string("init", {.choices = {"book", "gpt2"}}) == "book");
  CHECK(f.string("path", {.fallback = "a.txt"}) == "a.txt");
  CHECK(f.numbers("betas", {.size = 2}) == std::vector<double>{0.9, 0.95});
  CHECK(f.numbers("none", {.fallback = std::vector<double>{}}).empty());
  CHECK(f.strings("freeze") == std::vector<std::string>{"*.scale"});
  CHECK(f.optional_integer("steps") == 300);
  CHECK(!f.optional_integer("epochs").has_value());
  CHECK(!f.optional_integer("x").has_value());
  CHECK(!f.optional_string("y").has_value());
  CHECK(f.object("norm").number("eps") == 1);
  CHECK(f.object("nothing").integer("z", {.fallback = 3}) == 3);
  CHECK(f.has("tie"));
  CHECK(!f.has("epochs"));
  CHECK_NOTHROW(f.finish());
}

TEST_CASE("fields: unknown keys, with what was probably meant (H78)") {
  const auto read = [](Fields& f) {
    Fields norm = f.object("model").object("norm");
    norm.string("type", {.fallback = "layer_norm"});
    norm.number("eps", {.fallback = 1e-5});
    norm.boolean("composed", {.fallback = false});
    f.object("train").integer("batch_size", {.fallback = 16});
  };
  CHECK(error_of(R"({"model": {"norm": {"epss": 1}}})", read) ==
        "toy.json: /model/norm/epss: unknown key; did you mean \"eps\"? (known: composed, eps, type)");
  CHECK(error_of(R"({"train": {"batch_sise": 8}})", read) ==
        "toy.json: /train/batch_sise: unknown key; did you mean \"batch_size\"? (known: batch_size)");
  CHECK(error_of(R"({"modle": {}})", read) ==
        "toy.json: /modle: unknown key; did you mean \"model\"? (known: model, train)");
  CHECK(error_of(R"({"model": {"norm": {"quite/other": 1}}})", read) ==
        "toy.json: /model/norm/quite~1other: unknown key (known: composed, eps, type)");
  CHECK(error_of(R"({"model": {"norm": {}}})", read) == "(nothing was thrown)");
  CHECK(error_of(R"({"anything": {"at": {"all": 1}}})", [](Fields&) {}) ==
        "toy.json: /anything: unknown key");
}

TEST_CASE("fields: wrong types (H106)") {
  CHECK(error_of(R"({"steps": "2"})", read_steps) ==
        "toy.json: /steps: must be an integer, got the text \"2\"");
  CHECK(error_of(R"({"steps": 2.5})", read_steps) == "toy.json: /steps: must be an integer, got 2.5");
  CHECK(error_of(R"({"steps": 1e300})", read_steps) ==
        "toy.json: /steps: must be an integer, above 2^53 with all its digits, got 1e+300");
  CHECK(error_of(R"({"steps": true})", read_steps) == "toy.json: /steps: must be an integer, got true");
  CHECK(error_of(R"({"steps": 18446744073709551615})", read_steps) ==
        "toy.json: /steps: must be an integer up to 9223372036854775807, got 18446744073709551615");
  CHECK(error_of(R"({"rate": null})", read_rate) == "toy.json: /rate: must be a number, got null");
  CHECK(error_of(R"({"rate": [1, 2]})", read_rate) ==
        "toy.json: /rate: must be a number, got the list [1,2]");
  CHECK(error_of(R"({"rate": {}})", read_rate) == "toy.json: /rate: must be a number, got an object");
  CHECK(error_of(R"({"tie": 1})", [](Fields& f) { f.boolean("tie"); }) ==
        "toy.json: /tie: must be true or false, got 1");
  CHECK(error_of(R"({"path": 1})", [](Fields& f) { f.string("path"); }) ==
        "toy.json: /path: must be a text, got 1");
  CHECK(error_of(R"({"norm": "none"})", [](Fields& f) { f.object("norm"); }) ==
        "toy.json: /norm: must be an object, got the text \"none\"");
  CHECK(error_of(R"({"freeze": "x"})", [](Fields& f) { f.strings("freeze"); }) ==
        "toy.json: /freeze: must be a list of texts, got the text \"x\"");
  CHECK(error_of(R"({"freeze": ["x", 2]})", [](Fields& f) { f.strings("freeze"); }) ==
        "toy.json: /freeze/1: must be a text, got 2");
  CHECK(error_of("[1]", [](Fields&) {}) == "toy.json: a config must be an object, got the list [1]");
}

TEST_CASE("fields: values out of range, missing and not known") {
  CHECK(error_of(R"({"steps": -4})", read_steps) == "toy.json: /steps: must be at least 1, got -4");
  CHECK(error_of(R"({"steps": 9})", [](Fields& f) { f.integer("steps", {.at_least = 1, .at_most = 8}); }) ==
        "toy.json: /steps: must be at most 8, got 9");
  CHECK(error_of("{}", read_steps) == "toy.json: /steps: must be given: an integer, at least 1");
  CHECK(error_of("{}", [](Fields& f) { f.object("data").string("path"); }) ==
        "toy.json: /data/path: must be given: a text");
  CHECK(error_of(R"({"rate": -0.1})", read_rate) ==
        "toy.json: /rate: must be at least 0 and less than 1, got -0.1");
  CHECK(error_of(R"({"rate": 1})", read_rate) ==
        "toy.json: /rate: must be at least 0 and less than 1, got 1");
  CHECK(error_of(R"({"lr": 0})", [](Fields& f) { f.number("lr", {.more_than = 0}); }) ==
        "toy.json: /lr: must be more than 0, got 0");
  CHECK(error_of(R"({"lr": 3})", [](Fields& f) { f.number("lr", {.at_most = 2.5}); }) ==
        "toy.json: /lr: must be at most 2.5, got 3");
  CHECK(error_of(R"({"betas": [0.9, 1.5]})", [](Fields& f) {
          f.numbers("betas", {.size = 2, .less_than = 1});
        }) == "toy.json: /betas/1: must be less than 1, got 1.5");
  CHECK(error_of(R"({"betas": [0.9]})", [](Fields& f) { f.numbers("betas", {.size = 2}); }) ==
        "toy.json: /betas: must have 2 numbers, got 1");
  CHECK(error_of(R"({"init": "gtp2"})", [](Fields& f) {
          f.string("init", {.choices = {"gpt2", "book"}});
        }) == "toy.json: /init: unknown value \"gtp2\"; did you mean \"gpt2\"? (known: book, gpt2)");
  const auto heads = [](Fields& f) { f.integer("n_heads", {.at_least = 1, .divides = {"emb_dim", 100}}); };
  CHECK(error_of(R"({"n_heads": 12})", heads) == "toy.json: /n_heads: must divide emb_dim = 100, got 12");
  CHECK(error_of(R"({"n_heads": 0})", heads) ==
        "toy.json: /n_heads: must be at least 1 and divide emb_dim = 100, got 0");
  CHECK(error_of(R"({"a": 1})", [](Fields& f) { f.throw_error("a", "must not be here"); }) ==
        "toy.json: /a: must not be here");
}

TEST_CASE("fields: a value that is not a finite number is none, wherever it comes from") {
  nlohmann::json made_by_hand = {{"rate", std::nan("")}};
  Fields f(made_by_hand, {"toy.json"});
  CHECK(expect::message<ConfigError>([&] { f.number("rate"); }) ==
        "toy.json: /rate: must be a finite number, got nan");
}

TEST_CASE("fields: the error knows file, pointer and rule, and where an overriding value was written") {
  const auto config = io::parse_json(R"({"train": {"steps": -1, "lr": "x"}})", "toy.json");
  Fields f(config, {.file = "toy.json", .overrides = {{"/train/steps", "--set train.steps=-1"}}});
  Fields train = f.object("train");
  try {
    train.integer("steps", {.at_least = 1});
    FAIL("must be rejected");
  } catch (const ConfigError& error) {
    CHECK(std::string(error.what()) == "--set train.steps=-1: /train/steps: must be at least 1, got -1");
    CHECK(error.file() == "--set train.steps=-1");
    CHECK(error.pointer() == "/train/steps");
    CHECK(error.rule() == "must be at least 1, got -1");
  }
  CHECK(expect::message<ConfigError>([&] { train.number("lr"); }) ==
        "toy.json: /train/lr: must be a number, got the text \"x\"");
  CHECK(train.origin("steps") == "--set train.steps=-1");
  CHECK(train.origin("lr") == "toy.json");
  CHECK(train.origin("epochs") == "");
  CHECK(expect::message<ConfigError>([] { Fields(nlohmann::json::object()).integer("n"); }) ==
        "config: /n: must be given: an integer");
}

TEST_CASE("fields: one list of keys for loader, schema and reference") {
  Fields f = Fields::describing("/model");
  CHECK(f.describing_only());
  CHECK(!f.building());
  CHECK(f.integer("n_layers", {.doc = "transformer blocks", .at_least = 1}) == 1);
  CHECK(f.number("drop_rate", {.doc = "dropout", .fallback = 0.25, .at_least = 0, .less_than = 1}) == 0.25);
  CHECK(f.number("small", {.more_than = 0, .less_than = 0.5}) == 0.25);
  CHECK(f.string("init", {.choices = {"book", "gpt2"}}) == "book");
  CHECK(!f.optional_integer("hidden", {.at_least = 1}));
  f.numbers("betas", {.fallback = std::vector<double>{0.9, 0.95}, .size = 2});
  Fields norm = f.object("norm", "which norm").described_for("layer_norm");
  norm.number("eps", {.fallback = 1e-5});
  norm.number("eps", {.fallback = 1e-5});  // once in the list

  const auto& keys = f.keys();
  REQUIRE(keys.size() == 8);
  CHECK(keys[0].pointer == "/model/n_layers");
  CHECK(keys[0].type == io::Key::Type::integer);
  CHECK(keys[0].doc == "transformer blocks");
  CHECK(keys[0].required);
  CHECK(keys[0].range == "at least 1");
  CHECK(keys[0].at_least == 1);
  CHECK(!keys[0].at_most);
  CHECK(keys[1].fallback == "0.25");
  CHECK(keys[1].range == "at least 0 and less than 1");
  CHECK(!keys[1].required);
  CHECK(keys[3].choices == std::vector<std::string>{"book", "gpt2"});
  CHECK(!keys[4].required);
  CHECK(keys[4].fallback == "");
  CHECK(keys[5].fallback == "[0.9,0.95]");
  CHECK(keys[5].size == 2);
  CHECK(keys[6].type == io::Key::Type::object);
  CHECK(keys[7].pointer == "/model/norm/eps");
  CHECK(keys[7].of == "layer_norm");
  CHECK(keys[7].fallback == "1e-05");
}

TEST_CASE("fields: the effective config has every default, and each key its origin") {
  Fields f = fields_of(R"({"train": {"steps": 300, "lr": 1e-2}})");
  f.integer("seed", {.fallback = 2266});
  Fields train = f.object("train");
  train.integer("steps");
  train.number("lr");
  train.optional_integer("epochs");
  train.number("clip", {.fallback = 0.1});
  CHECK(f.effective().dump() == R"({"seed":2266,"train":{"steps":300,"lr":0.01,"clip":0.1}})");
  CHECK(f.keys()[0].origin == "");
  CHECK(f.keys()[2].origin == "toy.json");
  CHECK(f.keys()[2].value == "300");
}

TEST_CASE("json: comments and a byte-order mark are allowed (H81, H82)") {
  CHECK(io::parse_json("// note\n{\"a\": 1 /* one */}\n", "toy.json").dump() == R"({"a":1})");
  CHECK(io::parse_json("\xEF\xBB\xBF{}", "toy.json").dump() == "{}");
}

TEST_CASE("json: everything else is rejected with its place (H82)") {
  CHECK(parse_error("{\"a\": 1,\n \"b\": ,}") ==
        "toy.json: line 2, column 7: unexpected ','; expected '[', '{', or a literal");
  CHECK(parse_error("{\"a\": 1,}") == "toy.json: line 1, column 9: unexpected '}'; expected string literal");
  CHECK(parse_error("{\"lr\": NaN}") ==
        "toy.json: line 1, column 8: invalid literal; last read: '\"lr\": N'");
  CHECK(parse_error("{\"lr\": 1e400}") == "toy.json: a number must not exceed the largest double, got 1e400");
  CHECK(parse_error("{} x") ==
        "toy.json: line 1, column 4: invalid literal; last read: '{} x'; expected end of input");
  CHECK(parse_error("") == "toy.json: expected JSON, got an empty text");
  CHECK(parse_error("{\"a\": 1, \"b\": {\"c\": [0, {\"d\": 1, \"d\": 2}]}}") ==
        "toy.json: /b/c/1/d: duplicate key");
  CHECK(parse_error("{\"a\": 1, \"b\": [{}, {\"a\": 3}], \"a\": 2}") == "toy.json: /a: duplicate key");
  CHECK(parse_error("[[1, [2]], {\"a\": {\"a\": [{\"a\": 1}]}}]") == "(nothing was thrown)");
}

TEST_CASE("json: a locale with a decimal comma changes nothing (H80)") {
  const DecimalComma locale;
  const std::string before = std::setlocale(LC_ALL, nullptr);
  const bool found = std::setlocale(LC_ALL, locale.name()) != nullptr;
  if (found) CHECK(std::localeconv()->decimal_point == std::string(","));
  Fields f = fields_of(R"({"lr": 0.5, "n": 2})");
  CHECK(f.number("lr") == 0.5);
  CHECK(f.integer("n") == 2);
  CHECK(f.effective().dump() == R"({"lr":0.5,"n":2})");
  CHECK(error_of(R"({"rate": 1.5})", read_rate) ==
        "toy.json: /rate: must be at least 0 and less than 1, got 1.5");
  std::setlocale(LC_ALL, before.c_str());
  if (!found) MESSAGE("skipped: no locale with a decimal comma can be made");
}

TEST_CASE("near matches: distance and threshold") {
  CHECK(io::edit_distance("", "abc") == 3);
  CHECK(io::edit_distance("epss", "eps") == 1);
  CHECK(io::edit_distance("my_nrom", "my_norm") == 1);  // two neighbors swapped
  CHECK(io::edit_distance("kitten", "sitting") == 3);
  CHECK(io::near_match("lr", {"lr_min", "steps"}) == "");
  CHECK(io::near_match("step", {"loss", "steps", "stop"}) == "steps");
  CHECK(io::near_match("x", {"y"}) == "");  // nothing of it is right
  CHECK(io::did_you_mean("b", {}) == "");
}
