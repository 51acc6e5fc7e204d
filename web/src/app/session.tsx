import { createContext, type ReactNode, useCallback, useContext, useEffect, useRef } from "react";
import { Navigate, useLocation } from "react-router";
import { cache } from "../api/cache";
import { onLoggedOff, type Schemas } from "../api/client";
import { live } from "../api/live";
import { useGet } from "../api/queries";
import { Problem } from "../components/Notice";
import { FirstPaint } from "./FirstPaint";
import { forgetPages } from "./recent";

export type Me = Schemas["Me"];
export type Permission = Me["permissions"][number];

const Session = createContext<Me | null>(null);

/** Who is logged on. */
export function useMe(): Me {
  const me = useContext(Session);
  if (me === null) throw new Error("nobody is logged on here");
  return me;
}

/** Whether whoever is logged on has a permission. What they may not do is not shown; the server refuses it anyway. */
export function useMay(permission: Permission): boolean {
  return useMe().permissions.includes(permission);
}

/** Whether whoever is logged on may change what belongs to `owner`. */
export function useOwns(owner: string): boolean {
  return useOwnership()(owner);
}

/** Returns what tells whether whoever is logged on may change what belongs to an owner. */
export function useOwnership(): (owner: string) => boolean {
  const { name, role } = useMe();
  return useCallback((owner) => name === owner || role === "admin" || role === "operator", [name, role]);
}

/** Shows what is inside to whoever is logged on; sends everybody else to the log-on page, and back afterwards. */
export function LoggedOn({ children }: { children: ReactNode }) {
  const location = useLocation();
  const me = useGet("/v1/me", {});
  useEffect(() => {
    onLoggedOff(() => {
      live.stop();
      forgetPages();
      cache.removeQueries({ predicate: ({ queryKey }) => queryKey[1] !== "/v1/me" });
      // only who was logged on is asked for again; without an answer it would be asked for ever
      void cache.resetQueries({
        predicate: ({ queryKey, state }) => queryKey[1] === "/v1/me" && state.data !== undefined,
      });
    });
  }, []);
  const was = useRef(false);
  const name = me.data?.name;
  if (name !== undefined) was.current = true;
  useEffect(() => {
    if (name !== undefined) live.start(null);
  }, [name]);
  if (me.data !== undefined && !me.isError) return <Session.Provider value={me.data}>{children}</Session.Provider>;
  if (me.error?.status === 401) {
    const to = `${location.pathname}${location.search}`;
    const logon = to === "/" ? "/logon" : `/logon?to=${encodeURIComponent(to)}`;
    return <Navigate to={logon} state={{ ended: was.current }} replace />;
  }
  if (me.error != null) {
    return (
      <main style={{ maxWidth: 560, margin: "15vh auto", padding: 16 }}>
        <Problem error={me.error} retry={() => me.refetch()} />
      </main>
    );
  }
  return <FirstPaint />;
}
