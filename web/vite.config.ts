import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const SERVER = process.env.PLIANT_URL ?? "http://127.0.0.1:7311";

/** Puts a `.gz` and a `.br` beside every file that shrinks, so that the server compresses nothing while it runs. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    writeBundle({ dir }, bundle) {
      for (const name of Object.keys(bundle)) {
        const path = join(dir ?? ".", name);
        const source = readFileSync(path);
        if (source.length < 1024 || name.endsWith(".woff2") || name.endsWith(".html")) continue;
        writeFileSync(`${path}.gz`, gzipSync(source, { level: 9 }));
        const params = { [constants.BROTLI_PARAM_QUALITY]: 11 };
        writeFileSync(`${path}.br`, brotliCompressSync(source, { params }));
      }
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [react(), compressed()],
  build: {
    target: ["chrome125", "firefox128", "safari17.5"], // of May 2024: those that know light-dark()
    emptyOutDir: true, // bundle.py says which
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 800,
  },
  server: {
    proxy: {
      "/v1": {
        target: SERVER,
        changeOrigin: true,
        configure: (proxy) => proxy.on("proxyReq", (request) => request.setHeader("origin", SERVER)),
      },
    },
  },
});
