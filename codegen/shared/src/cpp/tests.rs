//! Sources with a function `f`, whose definition is in the line with `/*<*/`, if in any.

use super::definition;

#[track_caller]
fn check(text: &str) {
    let marked = text.lines().position(|line| line.contains("/*<*/")).map(|line| line + 1);
    assert_eq!(definition(text, "f"), marked, "{text}");
    let windows = text.replace('\n', "\r\n");
    assert_eq!(definition(&windows, "f"), marked, "with carriage returns: {text}");
}

#[test]
fn a_definition_has_a_body() {
    for text in [
        "int f(int x) { return x; } /*<*/",
        "int f(int x);\nint f(int x) { /*<*/\n}",
        "int f\n(int x);\nint\nf /*<*/\n(int x)\n{\n}",
        "int g(int x) { return f(x); }\nint f(int x) { return x; } /*<*/",
        "int g() {\n  if (f(1)) {\n  }\n  return f(2);\n}\nextern \"C\" int f(int x) { /*<*/\n}",
        "int (*p)(int) = f;\nint y = f(3);\nint f(int x) {} /*<*/",
        "extern \"C\" {\nint f(int);\nint g() {}\nint f(int x) {} /*<*/\n}",
        "namespace a::b {\ninline namespace c {\nnamespace {\nvoid f() {} /*<*/\n}}}",
        "extern \"C\" __global__ void __launch_bounds__(256) f(int n) {} /*<*/",
        "__attribute__((noinline)) [[nodiscard]] static int f(int x) {} /*<*/",
        "template <typename T, int N = (1 > 0)> T f(T x) {} /*<*/",
        "auto f(int (*g)(int), int a[2] = {}) noexcept(true) -> std::pair<int, a::b *> { /*<*/\n}",
        "int f(int x) const volatile && noexcept override { /*<*/\n}",
        "int f(int x) try { /*<*/\n} catch (...) {}",
        "int f(int x) __attribute__((hot)) NOEXCEPT [[gnu::hot]] {} /*<*/",
        "int prefix_f(int x) {}\nint f_(int x) {}\nint f1() {}\nint f(int x) {} /*<*/",
        "int f\\\n(int x) {}".replace("f\\", "f/*<*/ \\").as_str(),
        "extern int f(int),\n  g(int);\nint f(int) {} /*<*/",
        "int f(const char *s = \"(\") {} /*<*/",
        "int million = 1'000'000; char q = '\\''; int f() {} /*<*/",
        "struct s { int a; } value = {1};\nint f(struct s x) {} /*<*/",
        "enum { f_a };\nusing g = int (*)(int);\nint f(g x) {} /*<*/",
    ] {
        check(text);
    }
}

#[test]
fn a_text_that_is_no_code_defines_nothing() {
    for text in [
        "// int f() {}\nint g();",
        "// goes on \\\nint f() {}\nint g();",
        "/* int f() {}\nint f() {} */ int f() {} /*<*/",
        "const char *text = \"int f() {}\";",
        "const char *text = \"\\\"\\\nint f() {}\";\nint f() {} /*<*/",
        "const char *raw = R\"a(\")\"\nint f() {}\n)a\";\nint f() {} /*<*/",
        "char open = '{';\nchar quote = '\"';\nint f() {} /*<*/",
        "#define BODY int f() {}\nint f() {} /*<*/",
        "#define BODY \\\n  int f() {} \\\n  int f() {}\nint f() {} /*<*/",
        "  #  define OPEN {  /* a comment\n int f() {} */ {\nint f() {} /*<*/",
        "#error it's f() {\nint f() {} /*<*/",
        "#include <f>\n#pragma f() {\nint f() {} /*<*/",
        "#if 0\nint f() {}\n#if 1\nint f() {}\n#endif\nint f() {}\n#endif\nint f() {} /*<*/",
        "#if 0\nit's {\n#else\nint f() {} /*<*/\n#endif",
        "#ifdef A\nint g(int x) {\n#else\nint g(long x) {\n#endif\n}\nint f() {} /*<*/",
        "int f(\n#ifdef A\nint a\n#else\nlong a\n#endif\n) {}".replace("f(", "f( /*<*/").as_str(),
        "",
        "f",
        "f(",
        "int f(int",
        "}}} int f() {} /*<*/",
        "\"",
        "'\\",
        "R\"",
        "#if",
        "/*",
        "#if 0",
    ] {
        check(text);
    }
}

#[test]
fn members_declarations_and_uses_are_no_definitions() {
    for text in [
        "int f(int x);",
        "extern \"C\" int f(int x);",
        "struct S { int f() { return 1; } };\nint f() { return 2; } /*<*/",
        "class f { f() {} };",
        "int S::f() { return 1; }\nint f() {} /*<*/",
        "S::S() : f(1) {}\nint g();",
        "S::S() : a(1), f(2) {}",
        "auto g = [](int f) { return f; };",
        "int g() { int f(int); return f(1); }",
        "int g(int f(int)) {}",
        "int x = f(1), y = g(f(2));",
        "int f = 1;\nstruct f { int a; };",
        "int f(int) = delete;",
        "typedef int f(int);",
    ] {
        check(text);
    }
}

#[test]
fn a_macro_may_make_it() {
    for text in [
        "#define KERNEL(name) extern \"C\" int name()\nKERNEL(g) {}\nKERNEL(f) { /*<*/\n}",
        "KERNEL(f) { /*<*/\n}\nint f_();",
        "KERNEL(int, f, 3)(int x) { return x; } /*<*/",
        "static KERNEL(f) { return 0; } /*<*/",
        "extern \"C\" int NAMED(f)(int x) {} /*<*/",
        "REGISTER(f)\nREGISTER(g)\nKERNEL(f) {} /*<*/",
        "DEFINE(f) /*<*/\nDEFINE(g)",
        "DEFINE(a,\n  f /*<*/\n)",
        "DEFINE(f); /*<*/",
        "DEFINE(a)\nDEFINE(f) /*<*/",
        "int g(int a = MAKE(f), int b[USE(f)]);\nstruct S { DEFINE(f) };",
        "KERNEL(f) {}\nint f() {} /*<*/",
        "namespace n { KERNEL(f) {} } /*<*/",
        "int g() { USE(f); }\nKERNEL(f) {} /*<*/",
        // Not its name alone, nor outside of bodies, nor as a macro's argument.
        "int g() { USE(f); }",
        "KERNEL(f_x) {}\nKERNEL(x, \"f\") {}\nKERNEL(a::f) {}\nKERNEL(f + 1) {}\nKERNEL(g(f)) {}",
        "static_assert(f);",
        "int *p = ADDRESS(f);",
        "int g(int f);",
        "KER(f",
    ] {
        check(text);
    }
}

#[test]
fn every_part_of_a_text_is_read() {
    let text = "#if 0 /* ä\n*/ \\\n#elif 1\n R\"ü(\")ü\" 'ß\\\\' 1'0e+é \"\\ö\\\n\" // ñ \\\r\n#endif\nKER\\\nNEL(f, [](int a) -> x::y<z> {}) const try {\nint f(é) noexcept(f(1)) -> a::b {}}) ]";
    let bounds: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    // Miri takes a second for a few of these texts.
    for start in bounds.iter().step_by(if cfg!(miri) { 40 } else { 1 }) {
        for end in bounds.iter().filter(|end| *end >= start) {
            _ = definition(&text[*start..*end], "f");
        }
    }
}
