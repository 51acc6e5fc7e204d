import { MantineProvider } from "@mantine/core";
import { Notifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { createBrowserRouter, RouterProvider } from "react-router";
import { cache } from "../api/cache";
import { PREFIX } from "../api/place";
import { cssVariables, theme } from "../theme/theme";
import { routes } from "./routes";

const router = createBrowserRouter(routes, { basename: PREFIX || "/" });

export function App({ nonce }: { nonce: string }) {
  return (
    <MantineProvider
      theme={theme}
      cssVariablesResolver={cssVariables}
      defaultColorScheme="auto"
      getStyleNonce={() => nonce}
    >
      <QueryClientProvider client={cache}>
        <Notifications position="bottom-right" autoClose={6000} />
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  );
}
