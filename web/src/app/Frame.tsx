import { ActionIcon, Button, Drawer, Menu, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconChevronDown, IconLogout, IconMenu2, IconMoon, IconPlus, IconSearch, IconUser } from "@tabler/icons-react";
import { type ReactNode, Suspense, useEffect } from "react";
import { Link, NavLink, Outlet, useLocation, useNavigate } from "react-router";
import { useChange, useGet } from "../api/queries";
import { Loading } from "../components/Notice";
import { text } from "../text";
import { ConnectionState, OfflineBar } from "./Connection";
import classes from "./Frame.module.css";
import { Keys } from "./keys";
import { openPalette, Palette } from "./Palette";
import { placesOf } from "./places";
import { useScheme } from "./scheme";
import { useMay, useMe } from "./session";

/** Everything around a page: where one can go, how the connection is, who one is. */
export function Frame() {
  const [opened, { open, close }] = useDisclosure(false);
  const location = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: going somewhere closes the drawer
  useEffect(close, [location.pathname]);
  return (
    <div className={classes.frame}>
      <button type="button" className={classes.skip} onClick={focusContent}>
        {text.skip}
      </button>
      <div className={classes.rail}>
        <Rail />
      </div>
      <Drawer opened={opened} onClose={close} size={248} title={text.product} padding="sm">
        <Rail bare />
      </Drawer>
      <Header openMenu={open} />
      <OfflineBar />
      <main id="content" tabIndex={-1} className={classes.main}>
        <Suspense
          fallback={
            <div className={classes.waiting}>
              <Loading rows={4} />
            </div>
          }
        >
          <Outlet />
        </Suspense>
      </main>
      <Palette />
      <Keys />
    </div>
  );
}

function focusContent(): void {
  document.getElementById("content")?.focus();
}

function Rail({ bare = false }: { bare?: boolean }) {
  const me = useMe();
  const maySubmit = useMay("jobs:write");
  return (
    <>
      {!bare && (
        <Link to="/" className={classes.product}>
          {text.product}
        </Link>
      )}
      {bare && maySubmit && (
        <Button component={Link} to="/submit" leftSection={<IconPlus size={16} />} fullWidth mb="xs">
          {text.submit}
        </Button>
      )}
      <nav aria-label={text.menu} className={classes.nav}>
        {placesOf(me.permissions).map((group) => (
          <div key={group.title ?? ""} className={classes.group}>
            {group.title && <div className={classes.groupTitle}>{group.title}</div>}
            {group.places.map((place) => (
              <NavLink key={place.path} to={place.path} end={place.path === "/"} className={classes.link}>
                <place.icon size={18} stroke={1.6} aria-hidden />
                {place.title}
              </NavLink>
            ))}
          </div>
        ))}
      </nav>
      <SlotsUsed />
    </>
  );
}

function SlotsUsed() {
  const overview = useGet("/v1/overview", {});
  if (overview.data === undefined || overview.data.num_slots === 0) return null;
  const { num_used: used, num_slots: total } = overview.data;
  return (
    <div className={classes.used}>
      <div className={classes.bar} aria-hidden>
        <div style={{ width: `${(100 * used) / total}%` }} />
      </div>
      <span>{text.slotsUsed(used, total)}</span>
    </div>
  );
}

function Header({ openMenu }: { openMenu: () => void }) {
  const maySubmit = useMay("jobs:write");
  return (
    <header className={classes.header}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        className={classes.burger}
        onClick={openMenu}
        aria-label={text.menu}
      >
        <IconMenu2 size={20} />
      </ActionIcon>
      <UnstyledButton className={classes.find} onClick={openPalette}>
        <IconSearch size={16} aria-hidden />
        <span>{text.search}</span>
        <kbd>Ctrl K</kbd>
      </UnstyledButton>
      <div className={classes.right}>
        <ConnectionState />
        {maySubmit && (
          <Button component={Link} to="/submit" leftSection={<IconPlus size={16} />} className={classes.submit}>
            {text.submit}
          </Button>
        )}
        <Account />
      </div>
    </header>
  );
}

function Account() {
  const me = useMe();
  const navigate = useNavigate();
  const [scheme, nextScheme] = useScheme();
  const logOff = useChange("post", "/v1/logoff", {
    onSettled: () => window.location.assign(new URL("logon", document.baseURI)),
  });
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <Button variant="subtle" color="gray" rightSection={<IconChevronDown size={14} />} className={classes.account}>
          <span className="cut">{me.name}</span>
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {me.name} · {me.role}
        </Menu.Label>
        <Menu.Item leftSection={<IconUser size={16} />} onClick={() => navigate("/me")}>
          {text.account}
        </Menu.Item>
        <Menu.Item leftSection={<IconMoon size={16} />} closeMenuOnClick={false} onClick={nextScheme}>
          {text.scheme.label}: {text.scheme[scheme]}
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => logOff.mutate({})}>
          {text.logOff}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

export function Centred({ children }: { children: ReactNode }) {
  return <main className={classes.centred}>{children}</main>;
}
