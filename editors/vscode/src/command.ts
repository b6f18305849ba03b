// The `opsmith` command: its path, and whether it has a language server. Knows nothing of VS Code.

import { execFile } from "node:child_process";

/** The command that a setting means. */
export function resolved(setting: string, workspaceFolder: string | undefined): string {
  const command = setting.trim() === "" ? "opsmith" : setting.trim();
  return workspaceFolder === undefined ? command : command.replaceAll("${workspaceFolder}", workspaceFolder);
}

/** The reason why a command cannot serve, for the user; `undefined` if it can. */
export function problem(command: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(command, ["lsp", "--help"], { timeout: 10_000 }, (error, _out, stderr) => {
      if (error === null) {
        resolve(undefined);
      } else if (error.code === "ENOENT") {
        resolve(
          `The command \`${command}\` was not found. Install it with \`cargo install opsmith-cli\`, ` +
            "or give its path in the setting `opsmith.command`.",
        );
      } else if (/unrecognized subcommand/.test(stderr)) {
        resolve(`\`${command}\` is a version without \`opsmith lsp\`. Install a newer one.`);
      } else {
        resolve(`\`${command} lsp\` does not start: ${stderr.trim() || error.message}`);
      }
    });
  });
}
