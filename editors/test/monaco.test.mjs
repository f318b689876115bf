// The Monaco editor with monaco-languageclient in Chromium, with the server behind a web socket.
// MONACO_PICTURES names a directory for pictures of each step.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node.js";
import { WebSocket, WebSocketServer } from "ws";
import { files, installed, program, workspace } from "./lib/files.mjs";

const browser = ["chromium", "chromium-browser", "google-chrome"].find((b) => installed(b, "--version"));
const skip = !program ? "the variable TERRACE does not name the program" : !browser ? "chromium is not installed" : false;

const text = files["main.tf"].replace("color  = local.name", "color  = local.nam").replace("module.m.out", "module.m");

// bundle contains the page and the editor.
const bundle = fileURLToPath(new URL("dist", import.meta.url));
if (!skip) {
  await build({ entryPoints: [fileURLToPath(new URL("monaco/page.mjs", import.meta.url))], bundle: true, splitting: true, format: "esm", outdir: bundle, loader: Object.fromEntries([".ttf", ".svg", ".png", ".mp3", ".wasm"].map((e) => [e, "dataurl"])), logLevel: "error" });
}

// serve serves the page and connects each web socket with a server.
async function serve(t, dir, theme) {
  const scenario = { root: pathToFileURL(dir).toString(), name: "main.tf", text, theme, hover: "input = local.na", complete: "value = module.m" };
  const page = `<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="/page.css"><style>html,body,#editor{margin:0;height:100%}</style><div id="editor"></div><script>window.scenario=${JSON.stringify(scenario)}</script><script type="module" src="/page.js"></script>`;
  const server = http.createServer((q, r) => {
    const name = /^\/[\w-]+\.(js|css)$/.test(q.url) ? q.url.slice(1) : "";
    r.setHeader("Content-Type", name.endsWith(".js") ? "text/javascript" : name ? "text/css" : "text/html");
    r.end(name ? readFileSync(path.join(bundle, name)) : page);
  });
  const sockets = new WebSocketServer({ server, path: "/lsp" });
  sockets.on("connection", (socket) => {
    const child = spawn(program, ["lsp"], { cwd: dir, stdio: ["pipe", "pipe", "inherit"] });
    const to = new StreamMessageWriter(child.stdin);
    new StreamMessageReader(child.stdout).listen((m) => socket.send(JSON.stringify(m)));
    socket.on("message", (m) => void to.write(JSON.parse(m)));
    socket.on("close", () => child.kill());
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const c of sockets.clients) {
      c.terminate();
    }
    sockets.close();
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${server.address().port}/`;
}

// open opens a page in the browser and returns the function that sends commands to it.
async function open(t, url) {
  const profile = mkdtempSync(path.join(tmpdir(), "terrace-browser-"));
  const child = spawn(browser, ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--window-size=1000,640", "--remote-debugging-port=0", `--user-data-dir=${profile}`, url], { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, HOME: profile } });
  t.after(async () => {
    const ended = new Promise((r) => child.on("exit", r));
    child.kill("SIGKILL");
    await ended;
    try {
      rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    } catch {
      // A process of the browser may still write. The directory is temporary.
    }
  });
  const endpoint = await new Promise((resolve, reject) => {
    let all = "";
    child.stderr.on("data", (b) => {
      const m = /ws:\/\/\S+/.exec((all += b));
      m && resolve(m[0]);
    });
    child.on("exit", () => reject(new Error(`the browser ended: ${all}`)));
  });
  const pages = await (await fetch(`http://${new URL(endpoint).host}/json/list`)).json();
  const socket = new WebSocket(pages.find((p) => p.type === "page").webSocketDebuggerUrl);
  await new Promise((resolve) => socket.on("open", resolve));
  t.after(() => socket.terminate());
  let last = 0;
  const waiting = new Map();
  socket.on("message", (b) => {
    const m = JSON.parse(b);
    waiting.get(m.id)?.(m);
  });
  const send = (method, params = {}) => new Promise((resolve, reject) => {
    const id = ++last;
    waiting.set(id, (m) => (m.error ? reject(new Error(m.error.message)) : resolve(m.result)));
    socket.send(JSON.stringify({ id, method, params }));
  });
  const evaluate = async (expression) => {
    const r = await send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (r.exceptionDetails) {
      throw new Error(r.exceptionDetails.exception?.description ?? r.exceptionDetails.text);
    }
    return r.result.value;
  };
  for (let i = 0; !(await evaluate("window.ready === true")); i++) {
    assert.ok(i < 400, "the page is not ready within 20 seconds");
    await new Promise((r) => setTimeout(r, 50));
  }
  return { send, evaluate };
}

for (const theme of ["vs", "vs-dark"]) {
  test(`Monaco, ${theme}`, { skip }, async (t) => {
    const dir = workspace(t);
    const page = await open(t, await serve(t, dir, theme));
    const step = async (name) => {
      const got = await page.evaluate(`window.steps.${name}()`);
      if (process.env.MONACO_PICTURES) {
        mkdirSync(process.env.MONACO_PICTURES, { recursive: true });
        await new Promise((r) => setTimeout(r, 300));
        const { data } = await page.send("Page.captureScreenshot", { format: "png" });
        writeFileSync(path.join(process.env.MONACO_PICTURES, `${theme}-${name}.png`), Buffer.from(data, "base64"));
      }
      return got;
    };
    assert.match((await step("diagnostics"))[0], /"nam"/);
    assert.match(await step("hints"), /overridden in web_override\.tf:2/);
    assert.match(await step("hover"), /n-3/);
    assert.match(await step("completion"), /out/);
  });
}
