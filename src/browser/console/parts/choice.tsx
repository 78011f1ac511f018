// A choice of a few: as a list that opens, or as words beside each other.
import type { ComponentChildren } from "preact"
import { useId } from "preact/hooks"

interface Option {
  readonly value: string
  readonly text: string
}

interface ChoiceProps {
  readonly label: string
  readonly options: ReadonlyArray<Option>
  readonly value: string
  readonly onChoose: (value: string) => void
  readonly name?: string
  readonly hint?: string | undefined
}

/** A list that opens: the browser's own. A value that is no option is shown as it is. */
export const Choice = ({ hint, label, name, onChoose, options, value }: ChoiceProps) => {
  const id = useId()
  const isKnown = options.some((each) => each.value === value)
  return (
    <div class="field">
      <label class="label" for={id}>
        {label}
      </label>
      <select
        id={id}
        class="input"
        name={name}
        value={value}
        aria-describedby={hint && `${id}-hint`}
        onChange={({ currentTarget }) => onChoose(currentTarget.value)}
      >
        {!isKnown && <option value={value}>{value}</option>}
        {options.map((each) => (
          <option key={each.value} value={each.value}>
            {each.text}
          </option>
        ))}
      </select>
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  )
}

interface SegmentsProps extends Omit<ChoiceProps, "hint"> {
  /** Above the words; else for screen readers only. */
  readonly isLabelShown?: boolean
}

/** Words beside each other, of which one is chosen: arrow keys change it. */
export const Segments = (props: SegmentsProps) => {
  const { isLabelShown, label, onChoose, options, value } = props
  const id = useId()
  return (
    <fieldset class="segments">
      <legend class={isLabelShown ? "label" : "unseen"}>{label}</legend>
      <div>
        {options.map((each) => (
          <label key={each.value}>
            <input
              type="radio"
              name={props.name ?? id}
              value={each.value}
              checked={each.value === value}
              onChange={() => onChoose(each.value)}
            />
            <span class="word">{each.text}</span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}

interface CheckProps {
  readonly isOn: boolean
  readonly onChange: (isOn: boolean) => void
  readonly hint?: string
  readonly children: ComponentChildren
}

export const Check = ({ children, hint, isOn, onChange }: CheckProps) => {
  const id = useId()
  return (
    <div class="check">
      <input
        id={id}
        type="checkbox"
        checked={isOn}
        aria-describedby={hint && `${id}-hint`}
        onChange={({ currentTarget }) => onChange(currentTarget.checked)}
      />
      <div>
        <label for={id}>{children}</label>
        {hint && (
          <p class="soft" id={`${id}-hint`}>
            {hint}
          </p>
        )}
      </div>
    </div>
  )
}
