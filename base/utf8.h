#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardplan {

/// The bytes of the character that begins at `at`; 0 if none does: at the end of the text, and for invalid or overlong
/// sequences and surrogates, of which no later output could be correct.
std::size_t utf8_length(std::string_view text, std::size_t at);

/// Appends a code point; a surrogate, which stands for nothing by itself, becomes U+FFFD.
void append_utf8(std::string& text, std::uint32_t code);

/// Whether a control character begins at `at`, as the one that begins a terminal's commands; also those above U+007F.
bool is_control(std::string_view text, std::size_t at);

/// Whether there is one anywhere, also a line break or tab.
bool has_control(std::string_view text);

}  // namespace shardplan
