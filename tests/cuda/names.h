// The kernels of a text: names after `__global__`, also in macros that define kernels, with their launch bounds.

#pragma once

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

namespace standin {

using Tokens = std::vector<std::string>;

// A kernel: its name with its namespaces, and the expression of its launch bounds, if it has some.
struct Named {
  std::string name, bounds;
};

// A macro whose body defines kernels, in whose names and bounds its parameters may occur.
struct NamingMacro {
  Tokens parameters;
  std::vector<Named> kernels;
};

inline bool is_word(const std::string &token) { return isalpha(static_cast<unsigned char>(token[0])) || token[0] == '_'; }

// Words and single characters of a text from `at` to its end, or to the end of its line if it is a directive's.
inline Tokens tokens_of(const std::string &text, size_t &at, bool directive) {
  Tokens tokens;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\n' && directive) break;
    if (c == '\n' && !directive) tokens.push_back("\n");
    if (c == '\\' && at + 1 < text.size() && text[at + 1] == '\n') {
      at += 2;
    } else if (text.compare(at, 2, "//") == 0) {
      while (at < text.size() && text[at] != '\n') ++at;
    } else if (text.compare(at, 2, "/*") == 0) {
      at = std::min(text.find("*/", at + 2), text.size() - 2) + 2;
    } else if (c == '"' || c == '\'') {
      const size_t start = at++;
      while (at < text.size() && text[at] != c && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
      tokens.push_back(text.substr(start, ++at - start));
    } else if (isalnum(static_cast<unsigned char>(c)) || c == '_') {
      const size_t start = at;
      while (at < text.size() && (isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_')) ++at;
      tokens.push_back(text.substr(start, at - start));
    } else if (c == '#' && !directive && (tokens.empty() || tokens.back() == "\n")) {
      // The directive as one token, read again by `kernels_of`.
      const size_t start = at;
      tokens_of(text, at, true);
      tokens.push_back(text.substr(start, at - start));
    } else {
      if (!isspace(static_cast<unsigned char>(c))) tokens.push_back(std::string(1, c));
      ++at;
    }
  }
  return tokens;
}

// The arguments in parentheses after a word, and the place after them.
inline std::vector<Tokens> arguments_of(const Tokens &tokens, size_t &at) {
  std::vector<Tokens> arguments(1);
  int depth = 0;
  for (; at < tokens.size(); ++at) {
    const std::string &token = tokens[at];
    if (token == "\n") continue;
    if (token == "(" && depth++ == 0) continue;
    if (token == ")" && --depth == 0) break;
    if (token == "," && depth == 1) {
      arguments.emplace_back();
    } else {
      arguments.back().push_back(token);
    }
  }
  return arguments;
}

inline std::string joined(const Tokens &tokens) {
  std::string text;
  for (const std::string &token : tokens) text += token + (token == ":" ? "" : " ");
  return text;
}

// The kernel that `__global__` at this place defines; without a name for a template.
inline Named kernel_at(const Tokens &tokens, size_t at) {
  size_t before = at;
  while (before > 0 && tokens[before - 1] == "\n") --before;
  Named kernel;
  if (before > 0 && tokens[before - 1] == ">") return kernel;
  for (++at; at + 1 < tokens.size() && tokens[at] != ";" && tokens[at] != "{"; ++at) {
    if (tokens[at] == "__launch_bounds__") {
      kernel.bounds = joined(arguments_of(tokens, ++at)[0]);
    } else if (tokens[at + 1] == "(" && is_word(tokens[at])) {
      kernel.name = tokens[at];
      return kernel;
    }
  }
  return kernel;
}

using NamingMacros = std::map<std::string, NamingMacro>;

// Kernels among tokens.
inline std::vector<Named> kernels_in(const Tokens &tokens, NamingMacros &macros, bool body);

inline void define(const std::string &directive, NamingMacros &macros) {
  size_t at = 0;
  const Tokens tokens = tokens_of(directive, at, true);
  if (tokens.size() < 4 || tokens[1] != "define" || tokens[3] != "(") return;
  size_t end = 3;
  NamingMacro macro;
  for (const Tokens &parameter : arguments_of(tokens, end)) macro.parameters.push_back(parameter.empty() ? "" : parameter[0]);
  macro.kernels = kernels_in(Tokens(tokens.begin() + static_cast<long>(end), tokens.end()), macros, true);
  if (!macro.kernels.empty()) macros[tokens[2]] = macro;
}

inline std::vector<Named> kernels_in(const Tokens &tokens, NamingMacros &macros, bool body) {
  std::vector<Named> kernels;
  std::vector<std::pair<std::string, int>> namespaces;
  int depth = 0;
  std::string prefix;
  const auto add = [&](Named kernel) {
    if (!body) kernel.name = prefix + kernel.name;
    kernels.push_back(kernel);
  };
  for (size_t at = 0; at < tokens.size(); ++at) {
    const std::string &token = tokens[at];
    if (token[0] == '#' && !body) define(token, macros);
    if (token == "{") ++depth;
    if (token == "}" && !namespaces.empty() && namespaces.back().second == depth) {
      prefix.resize(prefix.size() - namespaces.back().first.size());
      namespaces.pop_back();
    }
    if (token == "}") --depth;
    if (token == "namespace" && at + 2 < tokens.size() && tokens[at + 2] == "{") {
      namespaces.push_back({tokens[at + 1] + "::", depth + 1});
      prefix += namespaces.back().first;
    }
    if (token == "__global__") {
      const Named kernel = kernel_at(tokens, at);
      if (!kernel.name.empty()) add(kernel);
    }
    const auto macro = macros.find(token);
    if (macro == macros.end() || at + 1 >= tokens.size() || tokens[at + 1] != "(") continue;
    size_t end = at + 1;
    const std::vector<Tokens> arguments = arguments_of(tokens, end);
    for (Named kernel : macro->second.kernels) {
      for (size_t i = 0; i < macro->second.parameters.size() && i < arguments.size(); ++i) {
        const std::string &parameter = macro->second.parameters[i];
        if (kernel.name == parameter && arguments[i].size() == 1) kernel.name = arguments[i][0];
        if (kernel.bounds == parameter + " ") kernel.bounds = joined(arguments[i]);
      }
      add(kernel);
    }
  }
  return kernels;
}

inline std::vector<Named> kernels_of(const std::string &text) {
  size_t at = 0;
  NamingMacros macros;
  std::vector<Named> kernels;
  for (const Named &kernel : kernels_in(tokens_of(text, at, false), macros, false)) {
    bool known = false;
    for (const Named &other : kernels) known |= other.name == kernel.name;
    if (!known) kernels.push_back(kernel);
  }
  return kernels;
}

}  // namespace standin
