import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const SERVER = process.env.PLIANT_URL ?? "http://127.0.0.1:7311";

/** Puts a `.gz` and a `.br` beside every file that shrinks, so that the server compresses nothing while it runs. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    generateBundle(_options, bundle) {
      for (const [name, part] of Object.entries(bundle)) {
        const source = Buffer.from(part.type === "chunk" ? part.code : part.source);
        if (source.length < 1024 || name.endsWith(".woff2") || name.endsWith(".html")) continue;
        this.emitFile({ type: "asset", fileName: `${name}.gz`, source: gzipSync(source, { level: 9 }) });
        const quality = { [constants.BROTLI_PARAM_QUALITY]: 11 };
        this.emitFile({
          type: "asset",
          fileName: `${name}.br`,
          source: brotliCompressSync(source, { params: quality }),
        });
      }
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [react(), compressed()],
  build: {
    outDir: "../src/pliant/server/console/bundle",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 400,
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
