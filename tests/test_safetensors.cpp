// The safetensors reader and writer: the cases H71 to H75 and H77, and what else a file may get wrong.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "handgrad/core/error.h"
#include "handgrad/core/random.h"
#include "handgrad/io/safetensors.h"
#include "temporary_folder.h"

using namespace handgrad;
using io::NamedArray;
using io::SafetensorsReader;

namespace {

std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct File {
  TemporaryFolder folder;
  std::filesystem::path path = folder.path() / "x.safetensors";

  void write(const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }

  /// A file with this header and so many bytes of data.
  void write(const std::string& header, const std::string& data) const {
    const std::uint64_t length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    write(bytes + header + data);
  }

  /// The error of reading it, without the path in front.
  std::string error_of() const {
    try {
      SafetensorsReader reader(path);
      for (const auto& entry : reader.entries()) (void)reader.read(entry);
    } catch (const Error& error) {
      CHECK(error.op() == '"' + path.string() + '"');
      return error.message();
    }
    return "accepted";
  }
  std::string error_of(const std::string& header, std::size_t data_bytes) const {
    write(header, std::string(data_bytes, '\0'));
    return error_of();
  }
  std::string error_of_offsets(const std::string& offsets) const {
    return error_of(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":)" + offsets + "}}", 8);
  }
};

template <class T>
std::string bytes_of(std::initializer_list<T> numbers) {
  return {reinterpret_cast<const char*>(std::data(numbers)), numbers.size() * sizeof(T)};
}

}  // namespace

TEST_CASE("safetensors: what is written comes back to the bit") {
  const File file;
  const Array a = Array::of({1, -0.0, 1e-40, 0.1, 5, 6}, {2, 3});
  const Array b = Array::of({3.14159, std::nan("")}, {2}, DType::float64);
  const Array scalar = Array::of({7}, {});
  const Array none = Array::zeros({0, 4});
  Array whole({3}, DType::int32);
  for (int i = 0; i < 3; ++i) whole.mutable_data<std::int32_t>()[i] = i - 1;
  const std::vector<NamedArray> written = {
      {"b.second", b}, {"a \"quoted\"", a}, {"none", none}, {"scalar", scalar}, {"ids", whole}};
  io::write_safetensors(file.path, written, {{"format", "pt"}});

  const SafetensorsReader reader(file.path);
  CHECK(reader.metadata() == io::Metadata{{"format", "pt"}});
  const std::vector<NamedArray> read = reader.read_all();
  REQUIRE(read.size() == written.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    CAPTURE(read[i].name);
    const Array back = reader.read(written[i].name);
    CHECK(back.shape() == written[i].array.shape());
    CHECK(back.dtype() == written[i].array.dtype());
  }
  CHECK(std::memcmp(reader.read("a \"quoted\"").data<float>(), a.data<float>(), a.bytes()) == 0);
  CHECK(std::memcmp(reader.read("b.second").data<double>(), b.data<double>(), b.bytes()) == 0);
  CHECK(std::memcmp(reader.read("ids").data<std::int32_t>(), whole.data<std::int32_t>(), whole.bytes()) == 0);
  CHECK(reader.find("missing") == nullptr);
  CHECK_THROWS_WITH(reader.read("missing"), doctest::Contains("there is no tensor missing"));
}

TEST_CASE(
    "safetensors: the header is padded with spaces to a multiple of 8 and equal input gives equal bytes") {
  const File file;
  const std::vector<NamedArray> arrays = {{"t", Array::of({1, 2}, {2})}};
  io::write_safetensors(file.path, arrays);
  const std::string bytes = read_bytes(file.path);
  const std::string header = R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  CHECK(bytes.size() == 8 + 56 + 8);
  CHECK(bytes.substr(0, 8) == bytes_of<std::uint64_t>({56}));
  CHECK(bytes.substr(8, 56) == header + "  ");
  CHECK(bytes.substr(64) == bytes_of<float>({1, 2}));
  io::write_safetensors(file.path, arrays);
  CHECK(read_bytes(file.path) == bytes);
}

TEST_CASE("safetensors: H71 wrong lengths are rejected before memory is allocated") {
  const File file;
  file.write(std::string(8, '\xff'));
  CHECK(file.error_of() == "the header should have 18446744073709551615 bytes, the file has 0");
  file.write(bytes_of<std::uint64_t>({100}) + std::string(12, ' '));
  CHECK(file.error_of() == "the header should have 100 bytes, the file has 12");
  file.write("");
  CHECK(file.error_of() == "a safetensors file has at least 8 bytes, this one 0");
  file.write("1234567");
  CHECK(file.error_of() == "a safetensors file has at least 8 bytes, this one 7");
  file.write(bytes_of<std::uint64_t>({0}));
  CHECK(file.error_of() == "the header must begin with {");
}

TEST_CASE("safetensors: H72 a shape must fill its span") {
  const File file;
  CHECK(file.error_of(R"({"t":{"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]}})", 4) ==
        "tensor t: shape [1000, 1000] of F32 needs 4000000 bytes, data_offsets span 4");
  // 2^32 * 2^32 wraps to 0.
  CHECK(file.error_of(R"({"t":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0) ==
        "tensor t: shape [4294967296, 4294967296] is too large");
  CHECK(file.error_of(R"({"t":{"dtype":"U8","shape":[0,18446744073709551615],"data_offsets":[0,0]}})", 0) ==
        "tensor t: shape [0, 18446744073709551615] is too large");
}

TEST_CASE("safetensors: H73 tensors must be adjacent and fill the data") {
  const File file;
  CHECK(file.error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                      R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                      12) == "tensors a and b overlap");
  CHECK(file.error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                      R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                      8) == "tensors a and b overlap");
  CHECK(file.error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12) ==
        "bytes 0 to 4 of the data belong to no tensor");
  CHECK(file.error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 9) ==
        "1 bytes follow the last tensor");
  CHECK(file.error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7) ==
        "the tensors need 8 bytes of data, the file has 7");
  // In the header the order is free.
  CHECK(file.error_of(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},)"
                      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                      12) == "accepted");
}

TEST_CASE("safetensors: H74 offsets are two whole numbers in order") {
  const File file;
  CHECK(file.error_of_offsets("[0,8]") == "accepted");
  CHECK(file.error_of_offsets("[8,0]") == "tensor t: data_offsets end before they begin: [8, 0]");
  CHECK(file.error_of_offsets("[0]") == "tensor t: data_offsets needs 2 numbers, got 1");
  CHECK(file.error_of_offsets("[]") == "tensor t: data_offsets needs 2 numbers, got 0");
  CHECK(file.error_of_offsets("[0,8,16]") == "tensor t: data_offsets has more than 2 numbers");
  for (const char* wrong :
       {"[-8,0]", R"(["0","8"])", "[0.0,8]", "8", "null", "[[0,8]]", "true", "[0,1e400]"}) {
    CAPTURE(wrong);
    CHECK(file.error_of_offsets(wrong) != "accepted");
  }
}

TEST_CASE("safetensors: H75 padding is spaces and nothing else") {
  const File file;
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  CHECK(file.error_of(header + "  ", 8) == "accepted");
  CHECK(file.error_of(header + std::string(2, '\0'), 8) == "the header has a NUL byte");
  CHECK(file.error_of("  " + header, 8) == "the header must begin with {");
  CHECK(doctest::String(file.error_of(header + "{}", 8).c_str()) ==
        doctest::Contains("the header is not JSON"));
}

TEST_CASE("safetensors: H77 half types are widened exactly") {
  const File file;
  const std::string header = R"({"b":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]},)"
                             R"("f":{"dtype":"F16","shape":[7],"data_offsets":[6,20]}})";
  file.write(header, bytes_of<std::uint16_t>({0x3F80, 0x4049, 0x0001}) +
                         bytes_of<std::uint16_t>({0x3C00, 0x0001, 0x7BFF, 0xFC00, 0x8000, 0x03FF, 0x0400}));
  const SafetensorsReader reader(file.path);
  CHECK(reader.read("b").dtype() == DType::float32);
  CHECK(reader.read("b").values() == std::vector<double>{1, 3.140625, std::ldexp(1, -133)});
  const std::vector<double> half = reader.read("f").values();
  CHECK(half == std::vector<double>{1, std::ldexp(1, -24), 65504, -INFINITY, -0.0, std::ldexp(1023, -24),
                                    std::ldexp(1, -14)});
  CHECK(std::signbit(half[4]));
}

TEST_CASE("safetensors: types that cannot be used are named") {
  const File file;
  CHECK(file.error_of(R"({"t":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", 8) ==
        "tensor t: numbers of type U8 cannot be used");
  CHECK(file.error_of(R"({"t":{"dtype":"f32","shape":[2],"data_offsets":[0,8]}})", 8) ==
        "tensor t: unknown dtype \"f32\"");

  const std::string header = R"({"t":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}})";
  file.write(header, bytes_of<std::int64_t>({-5, 2147483647}));
  CHECK(SafetensorsReader(file.path).read("t").values() == std::vector<double>{-5, 2147483647});
  file.write(header, bytes_of<std::int64_t>({0, 2147483648}));
  CHECK(file.error_of() == "tensor t: 2147483648 does not fit into 32 bits");
}

TEST_CASE("safetensors: headers of another form are rejected") {
  const File file;
  const std::string good = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  const struct {
    std::string header, message;
  } cases[] = {
      {R"({"t":)" + good + R"(,"t":)" + good + "}", "tensor t: occurs twice"},
      {R"({"t":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
       "tensor t: dtype occurs twice"},
      {R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})",
       "tensor t: unknown key \"more\""},
      {R"({"t":{"dtype":"F32","data_offsets":[0,8]}})", "tensor t: shape is missing"},
      {R"({"t":{"dtype":5,"shape":[2],"data_offsets":[0,8]}})", "tensor t: dtype must be text"},
      {R"({"t":{"dtype":["F32"],"shape":[2],"data_offsets":[0,8]}})", "tensor t: dtype must be text"},
      {R"({"t":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
       "tensor t: shape must be a list of whole numbers from 0"},
      {R"({"t":{"dtype":"F32","shape":[1,1,1,1,1,1,2],"data_offsets":[0,8]}})",
       "tensor t: shape has more than 6 numbers"},
      {R"({"t":5})", "tensor t: must be an object"},
      {R"({"t":{"dtype":{},"shape":[2],"data_offsets":[0,8]}})", "unexpected object"},
      {R"({"__metadata__":{"a":1},"t":)" + good + "}", "metadata a must be text"},
      {R"({"__metadata__":{"a":"1","a":"2"},"t":)" + good + "}", "metadata a occurs twice"},
  };
  for (const auto& [header, message] : cases) {
    CAPTURE(header);
    CHECK(file.error_of(header, 8) == message);
  }
  CHECK(file.error_of("{", 0) != "accepted");
  CHECK(file.error_of("{\"\xff\":{}}", 0) != "accepted");
  CHECK(file.error_of(R"({"t":)" + std::string(100000, '[') + "}", 0) == "tensor t: must be an object");
}

TEST_CASE("safetensors: whatever byte is damaged, the answer is an error or numbers") {
  const File file;
  const std::string header =
      R"({"__metadata__":{"a":"b"},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]}}     )";
  file.write(header, std::string(14, 'x'));
  const std::string good = read_bytes(file.path);
  REQUIRE(file.error_of() == "accepted");
  Random random(1);
  int rejected = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good;
    for (std::uint64_t flips = 1 + random.below(3); flips > 0; --flips) {
      bad[random.below(bad.size())] =
          static_cast<char>(i % 2 == 0 ? random.below(256) : "{}[]\",:0918"[random.below(12)]);
    }
    if (i % 10 == 0) bad.resize(random.below(bad.size()));
    file.write(bad);
    CAPTURE(bad);
    rejected += file.error_of() == "accepted" ? 0 : 1;
  }
  CHECK(rejected > 1000);
}

TEST_CASE("safetensors: files that cannot be read or written say why") {
  const TemporaryFolder folder;
  const auto message = [](const auto& work) -> std::string {
    try {
      work();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const std::filesystem::path missing = folder.path() / "no such file";
  CHECK(message([&] { SafetensorsReader reader(missing); }) ==
        '"' + missing.string() + "\": cannot be opened: No such file or directory");
  CHECK(message([&] { SafetensorsReader reader(folder.path()); }) ==
        '"' + folder.path().string() + "\": need a file of weights, got a folder or a device");
  const Array a = Array::zeros({2});
  CHECK(message([&] {
          io::write_safetensors(missing / "x", {{"a", a}});
        }) == '"' + (missing / "x").string() + "\": cannot be written: No such file or directory");
  CHECK(message([&] {
          io::write_safetensors(folder.path() / "x", {{"a", a}, {"a", a}});
        }) == '"' + (folder.path() / "x").string() + "\": tensor a occurs twice");
  CHECK_FALSE(std::filesystem::exists(folder.path() / "x"));
}

TEST_CASE("safetensors: H84 a full disk is noticed") {
  if (!std::filesystem::exists("/dev/full")) {
    MESSAGE("skipped: there is no /dev/full");
    return;
  }
  CHECK_THROWS_WITH(io::write_safetensors("/dev/full", {{"a", Array::zeros({2})}}),
                    "\"/dev/full\": cannot be written: No space left on device");
  CHECK(std::filesystem::exists("/dev/full"));
}
