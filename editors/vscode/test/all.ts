// Tests of the parts that know nothing of VS Code. `OPSMITH` may name the command.

import assert from "node:assert/strict";
import { test } from "node:test";

import { problem, resolved } from "../src/command";
import { isSpec } from "../src/spec";

test("specs are found by name or by their keys", () => {
  assert.ok(isSpec("/a/ops.yaml", ""));
  assert.ok(isSpec("C:\\a\\ops\\views.yaml", ""));
  assert.ok(isSpec("/a/mine.yaml", "# Mine.\n\nedition: 1\n\nops:\n- func: f\n"));
  assert.ok(isSpec("/a/mine.yaml", "include:\n- a.yaml\nedition: 1\n"));
  assert.ok(!isSpec("/a/compose.yaml", "services:\n  ops: 1\n"));
  assert.ok(!isSpec("/a/mine.yaml", "ops: []\n"));
  assert.ok(!isSpec("/a/book.yaml", "edition: 2\n"));
});

test("the setting may name the folder of the workspace", () => {
  assert.equal(resolved("", undefined), "opsmith");
  assert.equal(resolved("${workspaceFolder}/target/debug/opsmith", "/w"), "/w/target/debug/opsmith");
});

test("a command that is not there is named", async () => {
  assert.match((await problem("/no/such/opsmith")) ?? "", /`\/no\/such\/opsmith` was not found.*cargo install/s);
});

test("another command is told apart", async () => {
  assert.match((await problem("false")) ?? "", /`false lsp` does not start/);
});

test("the command of this checkout serves", { skip: !process.env.OPSMITH && "`OPSMITH` names no command" }, async () => {
  assert.equal(await problem(process.env.OPSMITH ?? ""), undefined);
});
