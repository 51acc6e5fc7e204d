import { Input, SegmentedControl, Stack, Switch, useMantineColorScheme } from "@mantine/core";
import { useKeysSwitch } from "../../app/keys";
import { SCHEMES } from "../../app/scheme";
import { useMe } from "../../app/session";
import { Facts } from "../../components/Facts";
import { Page } from "../../components/Page";
import { Panel } from "../../components/Panel";
import { Sides } from "../../components/Sides";
import { Time } from "../../components/Time";
import { SessionsPanel } from "../../people/SessionsPanel";
import { TokensPanel } from "../../people/TokensPanel";
import { text } from "../../text";
import { PasswordForm } from "./PasswordForm";

const words = text.me;

/** Who one is, what one may do, and one's own password, tokens and sessions. */
export default function Account() {
  const me = useMe();
  return (
    <Page title={words.title}>
      <Sides
        left={
          <>
            <Who />
            <Panel title={words.password.title}>
              <PasswordForm />
            </Panel>
            <Panel title={words.browser.title}>
              <Browser />
            </Panel>
          </>
        }
        right={
          <>
            <TokensPanel owner={me.name} />
            <SessionsPanel owner={me.name} />
            <Panel title={words.may}>
              <ul style={{ margin: 0, paddingLeft: 18, columnWidth: 280 }}>
                {me.permissions.map((permission) => (
                  <li key={permission}>{text.people.permissions[permission] ?? permission}</li>
                ))}
              </ul>
            </Panel>
          </>
        }
      />
    </Page>
  );
}

function Who() {
  const me = useMe();
  return (
    <Panel title={<span className="wrap">{me.name}</span>}>
      <Facts
        facts={[
          {
            label: words.role,
            value: (
              <>
                {text.people.roles[me.role] ?? me.role}
                <div className="dim">{text.people.roleHints[me.role]}</div>
              </>
            ),
          },
          { label: words.by, value: words.ways[me.by] ?? me.by },
          ...(me.expires_at === null ? [] : [{ label: words.until, value: <Time at={me.expires_at} /> }]),
        ]}
      />
    </Panel>
  );
}

function Browser() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const [keys, setKeys] = useKeysSwitch();
  return (
    <Stack gap="md">
      <div>
        <Input.Label size="xs" component="div" id="colours">
          {words.browser.colours}
        </Input.Label>
        <SegmentedControl
          fullWidth
          aria-labelledby="colours"
          value={colorScheme}
          onChange={(value) => setColorScheme(value as (typeof SCHEMES)[number])}
          data={SCHEMES.map((scheme) => ({ value: scheme, label: text.scheme[scheme] }))}
        />
      </div>
      <Switch
        label={words.browser.keys}
        description={words.browser.keysHint}
        checked={keys}
        onChange={(event) => setKeys(event.currentTarget.checked)}
      />
    </Stack>
  );
}
