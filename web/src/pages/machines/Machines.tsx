import { Page } from "../../components/Page";
import { text } from "../../text";

export default function Machines() {
  return <Page title={text.nav.machines}>…</Page>;
}
