// Starts `opsmith lsp` when a spec is opened, and tells the user if it cannot.

import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, type ServerOptions } from "vscode-languageclient/node";

import { problem, resolved } from "./command";
import { isSpec } from "./spec";

let client: LanguageClient | undefined;
let starting: Promise<void> | undefined;
/** Whether the user was told that there is no server, which is said once. */
let isTold = false;

export function activate(context: vscode.ExtensionContext): void {
  context.subscriptions.push(
    vscode.workspace.onDidOpenTextDocument((document) => startFor(document)),
    vscode.commands.registerCommand("opsmith.restart", restart),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("opsmith.command") || change.affectsConfiguration("opsmith.arguments")) {
        void restart();
      }
    }),
  );
  vscode.workspace.textDocuments.forEach((document) => startFor(document));
}

export async function deactivate(): Promise<void> {
  await stop();
}

function isSpecDocument(document: vscode.TextDocument): boolean {
  const isYaml = document.languageId === "yaml" && document.uri.scheme === "file";
  return isYaml && isSpec(document.uri.path, document.getText());
}

function startFor(document: vscode.TextDocument): void {
  if (client === undefined && isSpecDocument(document)) {
    starting ??= start().finally(() => (starting = undefined));
  }
}

async function restart(): Promise<void> {
  await starting;
  await stop();
  isTold = false;
  vscode.workspace.textDocuments.forEach((document) => startFor(document));
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  await running?.dispose();
}

async function start(): Promise<void> {
  const settings = vscode.workspace.getConfiguration("opsmith");
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
  const command = resolved(settings.get<string>("command", "opsmith"), folder);
  const found = await problem(command);
  if (found !== undefined) {
    await tell(found);
    return;
  }
  const server: ServerOptions = { command, args: ["lsp", ...settings.get<string[]>("arguments", [])] };
  const options: LanguageClientOptions = {
    documentSelector: [{ scheme: "file", language: "yaml" }],
    // Other YAML files stay with other extensions.
    middleware: {
      didOpen: async (document, next) => {
        if (isSpecDocument(document)) {
          await next(document);
        }
      },
    },
  };
  const starting = new LanguageClient("opsmith", "opsmith", server, options);
  try {
    await starting.start();
    client = starting;
  } catch (error) {
    await tell(`\`${command} lsp\` does not start: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Says why there is no server, and offers the settings. */
async function tell(message: string): Promise<void> {
  if (isTold) {
    return;
  }
  isTold = true;
  const settings = "Open settings";
  if ((await vscode.window.showErrorMessage(`opsmith: ${message}`, settings)) === settings) {
    await vscode.commands.executeCommand("workbench.action.openSettings", "opsmith.command");
  }
}
