const fs = require("node:fs");
fs.mkdirSync("dist");
fs.writeFileSync("dist/extension.js", `exports.activate = () => ${require("dependency")};\n`);
